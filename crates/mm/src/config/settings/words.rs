//! Types of fields that settings set, and the words of those that are enumerations.

use super::value::{Value, Values};

/// An enumeration that has a word for each variant.
pub(super) trait WordEnum: Copy + PartialEq + Sized + 'static {
    /// The words, in the order of the variants.
    const WORDS: &'static [&'static str];
    /// The variants.
    const ALL: &'static [Self];
}

/// A type of a field.
pub(super) trait FieldType: Sized {
    /// All values of the type.
    const VALUES: Values;
    /// The field as a value of a setting.
    fn value(self) -> Value;
    /// The field of a value; none: the value is of another kind.
    fn of(value: Value) -> Option<Self>;
}

/// All values of the type of a field.
pub(super) const fn values_of<C, T: FieldType>(_: fn(&C) -> T) -> Values {
    T::VALUES
}

impl<T: WordEnum> FieldType for T {
    const VALUES: Values = Values::Words(T::WORDS);

    fn value(self) -> Value {
        Value::Word(T::ALL.iter().zip(T::WORDS).find(|(variant, _)| **variant == self).map_or("", |(_, word)| word))
    }

    fn of(value: Value) -> Option<T> {
        T::ALL.iter().zip(T::WORDS).find(|(_, word)| Value::Word(word) == value).map(|(variant, _)| *variant)
    }
}

impl FieldType for bool {
    const VALUES: Values = Values::Flag;

    fn value(self) -> Value {
        Value::Flag(self)
    }

    fn of(value: Value) -> Option<bool> {
        if let Value::Flag(on) = value { Some(on) } else { None }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl FieldType for $number {
            const VALUES: Values = Values::NUMBER;

            fn value(self) -> Value {
                Value::Number(self as u64)
            }

            fn of(value: Value) -> Option<$number> {
                if let Value::Number(n) = value { <$number>::try_from(n).ok() } else { None }
            }
        })*
    };
}

numbers!(u32, u64, usize);

/// Words of the variants of an enumeration.
macro_rules! words {
    ($of:ident { $($word:literal = $variant:ident),* $(,)? }) => {
        impl $crate::config::settings::words::WordEnum for $of {
            const WORDS: &'static [&'static str] = &[$($word),*];
            const ALL: &'static [$of] = &[$($of::$variant),*];
        }
    };
}
pub(super) use words;
