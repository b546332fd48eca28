//! HTML and SVG as a tree of elements. Text and attributes are escaped; there is no way to put anything in unescaped but
//! the page's own style and script.

use std::fmt::{self, Display, Write as _};

/// An element with its children.
#[derive(Clone, Debug)]
pub struct Element {
    name: &'static str,
    attributes: String,
    children: String,
}

/// Elements that have no end.
const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// An empty element.
#[must_use]
pub fn element(name: &'static str) -> Element {
    Element { name, attributes: String::new(), children: String::new() }
}

/// A `div` of a class.
#[must_use]
pub fn div(class: &str) -> Element {
    element("div").with("class", class)
}

impl Element {
    /// With an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.attributes, " {name}=\"{}\"", Escaped(value));
        self
    }

    /// With an attribute if the condition holds.
    #[must_use]
    pub fn with_if(self, condition: bool, name: &str, value: impl Display) -> Self {
        if condition { self.with(name, value) } else { self }
    }

    /// With text.
    #[must_use]
    pub fn text(mut self, text: impl Display) -> Self {
        let _ = write!(self.children, "{}", Escaped(text));
        self
    }

    /// With a child.
    #[must_use]
    pub fn child(mut self, child: Self) -> Self {
        let _ = write!(self.children, "{child}");
        self
    }

    /// With children.
    #[must_use]
    pub fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        for child in children {
            let _ = write!(self.children, "{child}");
        }
        self
    }

    /// With the page's own style or script, which is part of this program.
    #[must_use]
    pub fn own_code(mut self, code: &'static str) -> Self {
        self.children.push_str(code);
        self
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if VOID.contains(&self.name) {
            return write!(f, "<{}{}>", self.name, self.attributes);
        }
        write!(f, "<{}{}>{}</{}>", self.name, self.attributes, self.children, self.name)
    }
}

/// A table with a row of headers, in a container that scrolls by itself. Columns after the first `left` are aligned to
/// the right.
#[must_use]
pub fn table(headers: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> Element {
    let align = |cell: Element, column: usize| cell.with_if(column >= left, "class", "n");
    let head = element("tr")
        .children(headers.iter().enumerate().map(|(column, header)| align(element("th").text(header), column)));
    let body = rows.into_iter().map(|row| {
        element("tr")
            .children(row.into_iter().enumerate().map(|(column, cell)| align(element("td").text(cell), column)))
    });
    div("scroll")
        .with("tabindex", 0)
        .child(element("table").child(element("thead").child(head)).child(element("tbody").children(body)))
}

struct Escaped<T>(T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaper<'a, 'f>(&'a mut fmt::Formatter<'f>);
        impl fmt::Write for Escaper<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for character in text.chars() {
                    match character {
                        '&' => self.0.write_str("&amp;")?,
                        '<' => self.0.write_str("&lt;")?,
                        '>' => self.0.write_str("&gt;")?,
                        '"' => self.0.write_str("&quot;")?,
                        '\'' => self.0.write_str("&#39;")?,
                        // Control characters are not allowed in HTML.
                        other if other.is_control() && !matches!(other, '\n' | '\t') => {
                            self.0.write_char('\u{fffd}')?;
                        }
                        other => self.0.write_char(other)?,
                    }
                }
                Ok(())
            }
        }
        write!(Escaper(f), "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::element;

    #[test]
    fn text_and_attributes_are_escaped() {
        let built = element("p").with("title", "a\"b'<").text("<script>&\u{7}").to_string();
        assert_eq!(built, "<p title=\"a&quot;b&#39;&lt;\">&lt;script&gt;&amp;\u{fffd}</p>");
    }
}
