//! From the configuration to the type of a policy.

/// Runs an expression with the type that the configuration names.
macro_rules! by_policy {
    ($kind:expr, $Policy:ident => $body:expr) => {
        match $kind {
            $crate::config::lru::Lru::TwoList => {
                type $Policy = $crate::lru::policy::TwoList;
                $body
            }
            $crate::config::lru::Lru::MultiGen => {
                type $Policy = $crate::lru::policy::MultiGenLru;
                $body
            }
        }
    };
}
