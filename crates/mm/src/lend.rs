//! Macros. How a room borrows: each has a struct of the parts that it may change, and lends some of
//! them to the rooms below it.

/// Methods that lend parts: `fn writeout() -> Writeout<'_, W> { pages, groups, … }`. The parts that
/// are named are those that the callee may change; nothing else can.
macro_rules! lend {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty)?) -> $room:ident<$($gen:tt),*> { $($part:ident),* $(; $own:ident)? })*) => {
        $($(#[$doc])* #[inline(always)]
        pub(crate) fn $name(&mut self $(, $arg: $ty)?) -> $room<$($gen),*> {
            $room { $($part: self.$part,)* $($own)? }
        })*
    };
}

/// Charged pages, and the world that is told which of them go.
macro_rules! lend_charged_and_world {
    () => {
        /// See [`Charged`]; with the world, which is told what is free.
        #[inline(always)]
        pub(crate) fn charged_and_world(&mut self) -> (Charged<'_>, &mut W) {
            let charged = Charged { cfg: self.cfg, pages: self.pages, groups: self.groups, frames: self.frames };
            (charged, self.world)
        }
    };
}

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
