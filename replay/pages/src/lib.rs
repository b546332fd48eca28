//! Report pages: HTML and SVG that stand alone in one file, open offline, and follow the reader's light or dark theme.

pub mod chart;
pub mod document;
pub mod format;
pub mod grouped;
pub mod markup;
pub mod parts;
