//! Measurements of a publication, and the names of results.

use super::policy::variant;
use super::read::{self, Field, Result, Section};
use super::types::{Band, BandFrom, Better, Published, PublishedRatio, PublishedRow, PublishedVariant, Scenario};
use super::{bands, metric, parameters};

const MAX_ROWS: usize = 256;
const MAX_VARIANTS: usize = 16;
const MAX_RATIOS: usize = 64;
/// The most seeds that a scenario asks for.
pub const MAX_SEEDS: u64 = 1000;
const ROW_KEYS: [&str; 15] = [
    "metric",
    "label",
    "unit",
    "before",
    "after",
    "band",
    "spread",
    "published",
    "bands",
    "bands_from",
    "count",
    "draw",
    "ratio",
    "scaled",
    "better",
];

pub(super) fn published(field: &Field<'_>, scenario: &Scenario, root: &Section<'_>) -> Result<Published> {
    let s = field.section(&["before", "after", "variant", "row", "notes", "seeds", "parameters"])?;
    let rows = s.need("row", "[[published.row]]")?;
    let sections = rows.sections(&ROW_KEYS, MAX_ROWS)?;
    let mut published = Published {
        variants: variants(&s, scenario)?,
        rows: Vec::new(),
        notes: s.or("notes", Vec::new(), |f| f.list(MAX_ROWS)?.iter().map(Field::line).collect())?,
        seeds: s.opt("seeds", |f| f.int(1..=MAX_SEEDS))?,
        parameters: Default::default(),
    };
    // Where bands are of numbers, ratios are nothing that anyone asked for.
    let numbers_count = sections.iter().any(|row| row.has("bands") || row.has("count") || row.has("draw"));
    for section in &sections {
        let mut row = row(section, scenario, &published.variants)?;
        if numbers_count && !section.has("ratio") && !section.has("band") {
            row.ratios.clear();
        }
        if published.rows.iter().any(|other| other.metric == row.metric) {
            return Err(section.error(format!("{} has a row already", row.metric)));
        }
        published.rows.push(row);
    }
    published.parameters =
        s.or("parameters", Default::default(), |f| parameters::parameters(f, root, &published.rows))?;
    if published.rows.is_empty() {
        return Err(rows.error("there is no row; write [[published.row]]"));
    }
    Ok(published)
}

/// Variants that are compared: `before` and `after`, or any number by name.
fn variants(s: &Section<'_>, scenario: &Scenario) -> Result<Vec<PublishedVariant>> {
    let one = |name: &str, field: &Field<'_>| {
        Ok(PublishedVariant { name: name.to_owned(), policy: variant(field, &scenario.policy)? })
    };
    let Some(list) = s.get("variant") else {
        let side = |key, example: &str| one(key, &s.need(key, example)?);
        let before = side("before", "[published.before] policy = \"mglru\"")?;
        return Ok(vec![before, side("after", "[published.after] policy = \"mglru-shadow\"")?]);
    };
    if let Some(field) = s.get("before").or(s.get("after")) {
        return Err(field.error("there are variants; write it as one of them, [published.variant.NAME]"));
    }
    let entries = list.any_section()?.entries();
    if entries.is_empty() || entries.len() > MAX_VARIANTS {
        return Err(list.error(format!("there are {}; write 1 to {MAX_VARIANTS}", entries.len())));
    }
    let named = |(name, field): &(&str, Field<'_>)| {
        read::name(name).map_err(|what| field.error(what))?;
        one(name, field)
    };
    entries.iter().map(named).collect()
}

fn row(s: &Section<'_>, scenario: &Scenario, variants: &[PublishedVariant]) -> Result<PublishedRow> {
    let metric = s.need("metric", "metric = \"total.seconds\"")?;
    let name = metric.line()?;
    metric::check(&name, scenario).map_err(|what| metric.bad(&what))?;
    let published = numbers(s, variants)?;
    Ok(PublishedRow {
        label: s.or("label", name.clone(), Field::line)?,
        metric: name,
        unit: s.or("unit", String::new(), Field::line)?,
        scaled: s.or("scaled", false, Field::boolean)?,
        bands: bands_of_numbers(s, variants, &published)?,
        ratios: ratios(s, variants, &published)?,
        published,
        better: s.opt("better", |f| f.choice(&[("higher", Better::Higher), ("lower", Better::Lower)]))?,
    })
}

/// The bands of numbers: given, or of percentages that were counted.
fn bands_of_numbers(
    s: &Section<'_>,
    variants: &[PublishedVariant],
    published: &[Option<f64>],
) -> Result<Vec<Option<Band>>> {
    let why = s.opt("bands_from", Field::line)?;
    let given = by_variant(s, "bands", variants, band)?;
    let counts = by_variant(s, "count", variants, |f| f.int(1..=1 << 40))?;
    let draws = by_variant(s, "draw", variants, number)?;
    let mut all = Vec::new();
    for (at, given) in given.into_iter().enumerate() {
        let given = given.map(|ends| Band { ends, from: BandFrom::Given(why.clone()) });
        let counted = counts[at].map(|count| match (&given, published[at]) {
            (None, Some(percent)) if percent <= 100.0 => Ok(bands::of_count(percent, count)),
            _ => Err(s.error(format!("count.{} needs a published percentage, and no band", variants[at].name))),
        });
        let drawn = draws[at].map(|exact| match (&given, &counted, published[at]) {
            (None, None, Some(n)) => Ok(Band { ends: [n - exact, n + exact], from: BandFrom::Draw }),
            _ => Err(s.error(format!("draw.{} needs a published number, and no band", variants[at].name))),
        });
        all.push(given.or(counted.transpose()?).or(drawn.transpose()?));
    }
    Ok(all)
}

/// The published numbers: in a table, or by keys of their own for variants that are called `before`
/// and `after`.
fn numbers(s: &Section<'_>, variants: &[PublishedVariant]) -> Result<Vec<Option<f64>>> {
    let mut all = by_variant(s, "published", variants, number)?;
    for key in ["before", "after"] {
        let Some(field) = s.get(key) else { continue };
        let Some(at) = variants.iter().position(|v| v.name == key) else {
            return Err(field.error(format!("no variant is called {key}; write published = {{ NAME = ... }}")));
        };
        if all[at].replace(number(&field)?).is_some() {
            return Err(field.error(format!("published.{key} says it already; write one of them")));
        }
    }
    Ok(all)
}

fn number(field: &Field<'_>) -> Result<f64> {
    field.float(0.0..=1e18)
}

/// A table with a value for some of the variants.
fn by_variant<T: Copy>(
    s: &Section<'_>,
    key: &str,
    variants: &[PublishedVariant],
    read: impl Fn(&Field<'_>) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let mut all = vec![None; variants.len()];
    let Some(field) = s.get(key) else { return Ok(all) };
    let names: Vec<_> = variants.iter().map(|v| v.name.as_str()).collect();
    let section = field.section(&names)?;
    for (at, name) in names.iter().enumerate() {
        all[at] = section.opt(name, &read)?;
    }
    Ok(all)
}

/// The ratios that a row lists; of two variants that of the second to the first.
fn ratios(s: &Section<'_>, variants: &[PublishedVariant], published: &[Option<f64>]) -> Result<Vec<PublishedRatio>> {
    let own = s.get("band").or(s.get("spread"));
    if let Some(list) = s.get("ratio") {
        if let Some(band) = own {
            return Err(band.error("the row lists its ratios; write this into one of them"));
        }
        let sections = list.sections(&["of", "to", "band", "band_from", "spread"], MAX_RATIOS)?;
        return sections.iter().map(|s| ratio(s, variants, published)).collect();
    }
    match (variants.len(), own) {
        (2, _) => Ok(vec![PublishedRatio { of: 1, to: 0, band: band_of_ratio(s, 1, 0, published)? }]),
        (_, None) => Ok(Vec::new()),
        (n, Some(band)) => Err(band.error(format!(
            "of which ratio? There are {n} variants; write ratio = [{{ of = \"...\", to = \"...\", band = [0.9, 1.1] }}]"
        ))),
    }
}

fn ratio(s: &Section<'_>, variants: &[PublishedVariant], published: &[Option<f64>]) -> Result<PublishedRatio> {
    let index = |f: &Field<'_>| f.index("a variant", variants.iter().map(|v| v.name.as_str()));
    let of = index(&s.need("of", "of = \"after\"")?)?;
    let to_field = s.need("to", "to = \"before\"")?;
    let to = index(&to_field)?;
    if to == of {
        return Err(to_field.bad("is what the ratio is of; name another variant"));
    }
    Ok(PublishedRatio { of, to, band: band_of_ratio(s, of, to, published)? })
}

/// The band that is given, or half to double of what was published of both.
fn band_of_ratio(s: &Section<'_>, of: usize, to: usize, published: &[Option<f64>]) -> Result<Option<Band>> {
    let spread = s.opt("spread", band)?;
    if let Some(field) = s.get("band") {
        if spread.is_some() {
            return Err(field.error("a spread widens the band that follows from what was published; write one of them"));
        }
        let why = s.opt("band_from", Field::line)?;
        return Ok(Some(Band { ends: band(&field)?, from: BandFrom::Given(why) }));
    }
    let both = published[of].zip(published[to]);
    if both.is_none() && spread.is_some() {
        return Err(s.error("there is a spread, and nothing published of both"));
    }
    Ok(both.map(|(of, to)| bands::of_change(of, to, spread)))
}

fn band(field: &Field<'_>) -> Result<[f64; 2]> {
    let ends = field.list(2)?;
    let [low, high] = ends.as_slice() else {
        return Err(field.bad("is not a band; write [0.98, 1.02], and inf for no upper end"));
    };
    let band = [low.float(0.0..=f64::MAX)?, high.float(0.0..=f64::INFINITY)?];
    if band[0] <= band[1] { Ok(band) } else { Err(field.error("the band ends before it begins")) }
}
