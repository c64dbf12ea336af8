//! Numbers rounded as they are embedded.

use serde::{Serialize, Serializer};

/// Six digits that count, and of whole numbers and of those from a million on all before the point:
/// more is never shown, and would only take room.
pub(crate) fn rounded(n: f64) -> f64 {
    if n == 0.0 || !n.is_finite() {
        return 0.0;
    }
    if n.fract() == 0.0 || n.abs() >= 1e6 {
        return n.round();
    }
    let digits = 5 - n.abs().log10().floor() as i32;
    if digits > 300 {
        return 0.0;
    }
    // A power of ten is exact where a small one is not.
    let ten = 10f64.powi(digits);
    (n * ten).round() / ten
}

/// A number as it is embedded: rounded, and whole where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded(pub(crate) f64);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let n = rounded(self.0);
        if n.fract() == 0.0 && n.abs() < 9e15 { to.serialize_i64(n as i64) } else { to.serialize_f64(n) }
    }
}

/// Rounds every number of a JSON value that is not whole.
pub(crate) fn round_all(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Number(n) if n.is_f64() => {
            let n = n.as_f64().unwrap_or(0.0);
            *value = serde_json::to_value(Rounded(n)).unwrap_or(Value::Null);
        }
        Value::Array(all) => all.iter_mut().for_each(round_all),
        Value::Object(all) => all.values_mut().for_each(round_all),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_embedded_has_six_digits() {
        for (n, want) in [
            (0.123_456_789, "0.123457"),
            (5.0, "5"),
            (1_234_567.8, "1234568"),
            (745_253_993.0, "745253993"),
            (-2.5, "-2.5"),
            (1e-320, "0"),
        ] {
            assert_eq!(serde_json::to_string(&Rounded(n)).unwrap(), want);
        }
    }
}
