//! Values of settings, and which a setting takes.

use std::fmt;

/// A value of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A word.
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => write!(f, "{on}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::Word(word) => f.pad(word),
        }
    }
}

/// Values that a setting takes. As text: `true|false`, `one|other`, `1..16`, `N`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// On and off.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these numbers.
    OneOf(&'static [u64]),
    /// Numbers from the first to the second.
    Range(u64, u64),
}

impl Values {
    /// Largest number that a setting takes: sums of a few such numbers stay far from overflow.
    pub const LARGEST: u64 = 1 << 40;
    /// Any number.
    pub const NUMBER: Values = Values::Range(0, Values::LARGEST);

    /// Whether a value is one of these values.
    pub fn has(&self, value: Value) -> bool {
        match (self, value) {
            (Values::Flag, Value::Flag(_)) => true,
            (Values::Words(words), Value::Word(word)) => words.contains(&word),
            (Values::OneOf(numbers), Value::Number(n)) => numbers.contains(&n),
            (Values::Range(least, most), Value::Number(n)) => (*least..=*most).contains(&n),
            _ => false,
        }
    }

    /// The value that a text stands for, in the form that these values have.
    pub fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Values::Flag => text.parse().ok().map(Value::Flag),
            Values::Words(words) => words.iter().find(|word| **word == text).map(|word| Value::Word(word)),
            Values::OneOf(_) | Values::Range(..) => text.parse().ok().map(Value::Number),
        }
    }

    /// Some of these values; of a range, both ends and a few between.
    pub fn some(&self) -> Vec<Value> {
        match self {
            Values::Flag => [false, true].map(Value::Flag).to_vec(),
            Values::Words(words) => words.iter().map(|word| Value::Word(word)).collect(),
            Values::OneOf(numbers) => numbers.iter().map(|&n| Value::Number(n)).collect(),
            Values::Range(least, most) => {
                let between = [1, 2, 4, 5, 16, 64, 256, 1000].into_iter().filter(|n| (least..most).contains(&n));
                [*least].into_iter().chain(between).chain([*most]).map(Value::Number).collect()
            }
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Flag => f.write_str("true|false"),
            Values::Words(words) => f.write_str(&words.join("|")),
            Values::OneOf(numbers) => f.write_str(&numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("|")),
            Values::Range(0, Values::LARGEST) => f.write_str("N"),
            Values::Range(least, most) => write!(f, "{least}..{most}"),
        }
    }
}
