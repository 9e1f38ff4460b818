//! A picture as SVG, written by hand: shapes and text in a fixed frame.

use std::fmt::Write as _;

/// Where a text stands on its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) size: u32,
    pub(super) bold: bool,
    pub(super) color: &'static str,
}

pub(super) const INK: &str = "#1f2430";
pub(super) const QUIET: &str = "#667085";
pub(super) const GRID: &str = "#e4e7ec";

pub(super) const TITLE: Style = Style { size: 17, bold: true, color: INK };
pub(super) const LABEL: Style = Style { size: 12, bold: false, color: INK };
pub(super) const SMALL: Style = Style { size: 11, bold: false, color: QUIET };

/// A picture that grows.
#[derive(Debug)]
pub(super) struct Picture {
    body: String,
}

impl Picture {
    /// An empty one of so many units, white; `title` is for those who do not see it.
    pub(super) fn new(width: u32, height: u32, title: &str) -> Self {
        let title = escaped(title);
        let body = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif\" role=\"img\">\n\
             <title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        Self { body }
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, style: Style, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.bold { "600" } else { "400" };
        self.put(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{}\" font-weight=\"{weight}\" \
             fill=\"{}\">{}</text>",
            style.size,
            style.color,
            escaped(text)
        ));
    }

    /// A text that reads upwards, for the name of an axis.
    pub(super) fn upwards(&mut self, x: f64, y: f64, style: Style, text: &str) {
        self.put(&format!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"{}\" \
             fill=\"{}\">{}</text>",
            style.size,
            style.color,
            escaped(text)
        ));
    }

    pub(super) fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, color: &str) {
        self.put(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\" fill=\"{color}\"/>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, width: f64) {
        self.put(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\" stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// Points that are joined, each with a dot.
    pub(super) fn path(&mut self, points: &[(f64, f64)], color: &str, dashed: bool) {
        let joined = points.iter().fold(String::new(), |mut joined, (x, y)| {
            // Writing to a string cannot fail.
            let _ = write!(joined, "{x:.1},{y:.1} ");
            joined
        });
        let pattern = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        self.put(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2.2\"{pattern}/>",
            joined.trim_end()
        ));
        for (x, y) in points {
            self.put(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" fill=\"{color}\"/>"));
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }

    fn put(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_the_picture() {
        let mut picture = Picture::new(10, 10, "a < b");
        picture.text(1.0, 2.0, Anchor::Middle, LABEL, "<script>&");
        let text = picture.finish();
        assert!(text.contains("<title>a &lt; b</title>"));
        assert!(text.contains(">&lt;script&gt;&amp;</text>"));
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }
}
