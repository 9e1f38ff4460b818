//! A flame graph as SVG: callers below, callees above, as wide as their share of the samples.
//!
//! Written here and not by the crate that is known for it: that one's licence is not on our list, and its pictures carry a
//! program under the same licence. Ours have no program; the full name and the share show when the mouse rests on a frame.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    percent,
    stacks::{Frame, Place, Stacks},
};

/// The picture. What has less than a thousandth of the samples is not drawn, and more than that if the file would be too long.
pub(super) fn svg(title: &str, stacks: &Stacks) -> String {
    let total = stacks.total().max(1);
    let root = Node::of(stacks);
    let mut least = total.div_ceil(1000).max(1);
    loop {
        let text = Picture::draw(title, &root, total, least);
        if text.len() <= LEN_MAX || least >= total {
            return text;
        }
        least = least.saturating_mul(2);
    }
}

/// A frame with all that it called.
#[derive(Debug, Default)]
struct Node<'s> {
    count: u64,
    called: BTreeMap<&'s Frame, Node<'s>>,
}

impl<'s> Node<'s> {
    fn of(stacks: &'s Stacks) -> Self {
        let mut root = Self::default();
        for (stack, count) in stacks.iter() {
            root.count += count;
            let mut node = &mut root;
            for frame in stack {
                node = node.called.entry(frame).or_default();
                node.count += count;
            }
        }
        root
    }

    /// The number of frames above it that are drawn.
    fn depth(&self, least: u64) -> u64 {
        let drawn = self.called.values().filter(|node| node.count >= least);
        drawn.map(|node| 1 + node.depth(least)).max().unwrap_or(0)
    }
}

#[derive(Debug)]
struct Picture {
    text: String,
    total: u64,
    least: u64,
    /// Where the lowest row begins.
    bottom: u64,
}

impl Picture {
    fn draw(title: &str, root: &Node<'_>, total: u64, least: u64) -> String {
        let bottom = TOP + root.depth(least) * ROW;
        let height = bottom + ROW + 4;
        let mut picture = Self { text: String::new(), total, least, bottom };
        let title = escaped(title);
        let about = format!("{} samples; drawn from {} on", root.count, percent(least, total));
        picture.line(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">"
        ));
        picture.line(&format!("<title>{title}</title>"));
        picture.line(STYLE);
        picture.line(&format!("<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>"));
        picture.line(&format!("<text class=\"head\" x=\"4\" y=\"18\">{title}</text>"));
        picture.line(&format!("<text x=\"4\" y=\"34\">{about}: user blue, kernel orange</text>"));
        picture.row(root, 0, 0);
        picture.line("</svg>");
        picture.text
    }

    /// The frames that one called, from the sample at which it begins.
    fn row(&mut self, node: &Node<'_>, begin: u64, level: u64) {
        let mut begin = begin;
        for (frame, called) in &node.called {
            if called.count >= self.least {
                self.frame(frame, called.count, begin, level);
                self.row(called, begin, level + 1);
            }
            begin += called.count;
        }
    }

    fn frame(&mut self, frame: &Frame, count: u64, begin: u64, level: u64) {
        let (left, right) = (self.tenths(begin), self.tenths(begin + count));
        let width = right - left;
        let y = self.bottom.saturating_sub(level * ROW);
        let name = escaped(&cut(&frame.name, NAME_MAX));
        let class = match frame.place {
            Place::Thread => "t".to_owned(),
            Place::User => format!("u{}", shade(&frame.name)),
            Place::Kernel => format!("k{}", shade(&frame.name)),
        };
        let share = percent(count, self.total);
        let (x, wide) = (decimal(left), decimal(width));
        let mut text = format!(
            "<g><title>{name} {share}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{}\"/>",
            ROW - 1
        );
        let room = usize::try_from(width.saturating_sub(40) / LETTER_TENTHS).unwrap_or(0);
        if room >= LETTERS_MIN {
            let label = escaped(&cut(&frame.short(), room));
            // Writing to a string cannot fail.
            let _ = write!(text, "<text x=\"{}\" y=\"{}\">{label}</text>", decimal(left + 20), y + 12);
        }
        text.push_str("</g>");
        self.line(&text);
    }

    /// The position of a sample, in tenths of a pixel.
    fn tenths(&self, sample: u64) -> u64 {
        sample.saturating_mul(WIDTH * 10) / self.total
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Of two neighbours of one kind, so that they are told apart: the same name has the same shade.
fn shade(name: &str) -> u32 {
    name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 4
}

fn decimal(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const WIDTH: u64 = 1200;
const ROW: u64 = 16;
const TOP: u64 = 44;
const LETTER_TENTHS: u64 = 66;
const LETTERS_MIN: usize = 3;
const NAME_MAX: usize = 160;
const LEN_MAX: usize = 300_000;
const STYLE: &str = "<style>text{font:11px monospace}.head{font:bold 14px sans-serif}.paper{fill:#fff}.t{fill:#ccc}\
    .u0{fill:#a6c8ef}.u1{fill:#93bbe9}.u2{fill:#b5d3f4}.u3{fill:#9fc9e6}\
    .k0{fill:#f5b971}.k1{fill:#f2ab5b}.k2{fill:#f7c68a}.k3{fill:#efb566}</style>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_wide_as_their_share_and_callees_lie_above() {
        let stacks =
            Stacks::parse("t\n\tffffffff81000000 inner\n\t 10 a::outer<T>\n\nt\n\t 10 a::outer<T>\n\n");
        let text = svg("a & b", &stacks);
        let y = |name: &str| -> u64 {
            let line = text.lines().find(|line| line.contains(&format!("<title>{name} "))).unwrap();
            line.split_once(" y=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap()
        };
        assert!(y("t") > y("a::outer&lt;T&gt;") && y("a::outer&lt;T&gt;") > y("inner"), "{text}");
        assert!(text.contains("<title>inner 50.0 %</title><rect class=\"k"), "{text}");
        assert!(text.contains("width=\"600.0\"") && text.contains("width=\"1200.0\""), "{text}");
        assert!(text.contains("<title>a &amp; b</title>") && text.ends_with("</svg>\n"));
    }

    #[test]
    fn what_is_rare_is_left_out_until_the_picture_is_short() {
        let script = |stacks: u32| {
            (0..stacks).fold(String::new(), |mut script, index| {
                let _ = write!(script, "t\n\t 10 {}{index}\n\t 20 {index}\n\n", "long".repeat(40));
                script
            })
        };
        let text = svg("many", &Stacks::parse(&script(5000)));
        assert!(text.len() < LEN_MAX, "{}", text.len());
        assert!(text.contains("<title>t 100.0 %</title>") && !text.contains("long"), "each is 0.02 %");
        let text = svg("few", &Stacks::parse(&script(50)));
        assert!(text.contains("long"));
        let text = svg("too much", &Stacks::parse(&script(900)));
        assert!(text.len() < LEN_MAX && !text.contains("long"), "{}", text.len());
    }

    #[test]
    fn nothing_is_a_picture_too() {
        assert!(svg("nothing", &Stacks::default()).contains("0 samples"));
    }
}
