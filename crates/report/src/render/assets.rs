//! The script, the styles, and the library of charts.

/// Our own script.
pub(super) const JS: &str = include_str!("../assets/report.js");
/// Our own styles.
pub(super) const CSS: &str = include_str!("../assets/report.css");
/// The library of charts; `assets/uplot/README.md` says how to update it.
pub(super) const UPLOT_JS: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
/// Its styles.
pub(super) const UPLOT_CSS: &str = include_str!("../assets/uplot/uPlot.min.css");
/// Its licence.
pub(super) const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");
/// Its version.
pub(super) const UPLOT_VERSION: &str = "1.6.32";
