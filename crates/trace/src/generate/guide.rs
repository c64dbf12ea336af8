//! A function by table, and how far off the table may be.
//!
//! Between its ends a cell is a cubic that has the function's values and slopes there. A decision
//! that no error of the table changes needs no call of the function.

use super::rng::Fraction;

const CELL_BITS: u32 = 10;
/// Cells of a table.
pub(super) const CELLS: usize = 1 << CELL_BITS;

/// Factor on the error that was measured. The error of a cubic is 0 at both ends of a cell and has
/// one maximum between them; it is measured at a quarter, a half and three quarters.
const ALLOWANCE: f64 = 4.0;

/// Largest factor by which the value or its slope may grow or shrink in a cell that is used. Then
/// the fourth derivative, which the error is proportional to, changes by no more than about
/// [`ALLOWANCE`], so that the maximum is near the middle.
const MAX_GROWTH: f64 = 1.25;

/// Beyond what the cubic is off: rounding of the functions, relative to the value.
const ROUNDING: f64 = 1e-12;

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The cubic, by ascending powers of the place in the cell, 0 to 1.
    powers: [f64; 4],
    /// Largest error of the cubic; infinite: the cell is not used.
    error: f64,
}

/// A table of a function.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// Where the first cell begins, and cells for each unit of the argument.
    from: f64,
    per_unit: f64,
    cells: Box<[Cell; CELLS]>,
}

impl Guide {
    /// The table of a positive function that grows; its derivative where its value is x is
    /// `slope(x)`.
    pub(super) fn of_growing([from, to]: [f64; 2], value: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> Guide {
        let width = (to - from) / CELLS as f64;
        let cell = |i: usize| {
            let at = |share: f64| value(from + (i as f64 + share) * width);
            let (x, m) = ([at(0.0), at(1.0)], [at(0.0), at(1.0)].map(|x| slope(x) * width));
            let mut cell = Cell { powers: hermite(x, m), error: 0.0 };
            // The cubic is furthest off in the middle; the other places are there for curves that
            // turn.
            let off = [0.25, 0.5, 0.75].map(|share| (cell.at(share) - at(share)).abs());
            cell.error = ALLOWANCE * off.into_iter().fold(0.0, f64::max) + ROUNDING * x[1].abs();
            let grows_little = |[a, b]: [f64; 2]| a > 0.0 && a / b <= MAX_GROWTH && b / a <= MAX_GROWTH;
            // NaN is no growth that is small enough, either.
            cell.error = if grows_little(x) && grows_little(m) { cell.error } else { f64::INFINITY };
            cell
        };
        Guide { from, per_unit: 1.0 / width, cells: Box::new(std::array::from_fn(cell)) }
    }

    /// The table of cos(2 pi x) from 0 to 1. The fourth derivative is at most (2 pi)^4.
    pub(super) fn of_cosine() -> Guide {
        let width = std::f64::consts::TAU / CELLS as f64;
        let cell = |i: usize| {
            let ends = [i as f64 * width, (i + 1) as f64 * width];
            let powers = hermite(ends.map(f64::cos), ends.map(|x| -x.sin() * width));
            Cell { powers, error: width.powi(4) / 384.0 + ROUNDING }
        };
        Guide { from: 0.0, per_unit: CELLS as f64, cells: Box::new(std::array::from_fn(cell)) }
    }

    /// The value of a table from 0 to 1, and how far off it may be; infinite: the table does not
    /// say.
    #[inline(always)]
    pub(super) fn value_of(&self, place: Fraction) -> (f64, f64) {
        let (i, share) = place.cell::<CELL_BITS>();
        // Known to be below, and so told to the compiler.
        let cell = &self.cells[i % CELLS];
        (cell.at(share), cell.error)
    }

    /// The value at a place, and how far off it may be. None: the table does not say.
    #[inline]
    pub(super) fn value(&self, place: f64) -> Option<(f64, f64)> {
        let at = (place - self.from) * self.per_unit;
        // Casts of 32 bits are the cheap ones.
        let i = at as u32;
        let cell = self.cells.get(i as usize)?;
        Some((cell.at(at - f64::from(i)), cell.error))
    }
}

/// The cubic with these values and slopes at 0 and 1.
fn hermite([x0, x1]: [f64; 2], [m0, m1]: [f64; 2]) -> [f64; 4] {
    [x0, m0, 3.0 * (x1 - x0) - 2.0 * m0 - m1, 2.0 * (x0 - x1) + m0 + m1]
}

impl Cell {
    #[inline]
    fn at(&self, share: f64) -> f64 {
        let [a, b, c, d] = self.powers;
        ((d * share + c) * share + b) * share + a
    }
}
