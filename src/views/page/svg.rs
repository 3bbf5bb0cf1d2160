//! Pictures of columns: SVG in whole numbers, 640 units wide.

use super::html::Html;
use super::look::{
    Bars, BarsOf, ColumnLook, Counted, Label, Labels, Number, Numbers, Order, Picture, Scale, Stretch, Trace, Values,
    Width, words,
};
use crate::activity::words::count;

/// Width and height of a picture.
const WIDTH: usize = 640;
const HEIGHT: i64 = 104;

/// Height of the part that shows values over the rows; the strip of what is missing lies below.
const OVER: i64 = 88;

/// Most bytes of a name within a sentence.
const MOST_NAME: usize = 48;

/// Most bytes of a label.
const MOST_LABEL: usize = 80;

/// Where a bar begins, out of so many.
fn at(bar: usize, bars: usize) -> usize {
    bar * WIDTH / bars.max(1)
}

/// The column whose pictures are drawn.
pub struct Drawn<'a> {
    pub name: &'a str,
    pub units: Option<&'a str>,
    pub rows: u64,
    pub look: &'a ColumnLook,
    /// Whether the rows of its stretches are those of the column before.
    pub has_same_rows: bool,
}

impl Drawn<'_> {
    /// Writes the picture of the values.
    pub fn values(&self, picture: &Picture, out: &mut Html) {
        match &picture.values {
            Values::Bars(bars) => self.bars(bars, out),
            Values::Labels(labels) if labels.are_booleans => self.split(labels, out),
            Values::Labels(labels) => self.labels(labels, out),
        }
    }

    fn begin(&self, height: i64, out: &mut Html) {
        out.raw(&format!("<svg viewBox=\"0 0 {WIDTH} {height}\" preserveAspectRatio=none role=img"));
    }

    /// The name of the column, and its units, in a sentence.
    fn named(&self, out: &mut Html) {
        out.text(self.name, MOST_NAME);
        if let Some(units) = self.units {
            out.raw(" in ").text(units, MOST_NAME);
        }
    }

    fn bars(&self, bars: &Bars, out: &mut Html) {
        let all: u64 = bars.counts.iter().sum::<u64>() + bars.outside;
        let greatest = bars.counts.iter().max().copied().unwrap_or(0);
        self.begin(HEIGHT, out);
        let [from, to] = &bars.exact;
        out.raw(&format!(" data-from={from} data-to={to}"));
        if let Width::Whole(width) = bars.width {
            out.raw(&format!(" data-width={width}"));
        }
        if bars.scale == Scale::Log {
            out.raw(" data-scale=log");
        }
        if bars.outside > 0 {
            out.raw(&format!(" data-outside={}", bars.outside));
        }
        let counts: Vec<String> = bars.counts.iter().map(u64::to_string).collect();
        out.raw(" data-counts=").raw(&counts.join(","));
        if bars.rises {
            out.raw(" data-of=rows");
        }
        let [from, to] = bars.shown.each_ref().map(|Number(text)| text.as_str());
        let what = match bars.of {
            BarsOf::Values => "Values of ",
            BarsOf::Times => "Rows over time by ",
            BarsOf::Lengths => "Lengths of the lists of ",
            BarsOf::Bytes => "Bytes of the texts of ",
        };
        out.raw("><title>").raw(what);
        self.named(out);
        let of = if bars.rises { "rows" } else { "sampled values" };
        out.raw(&format!(": {} bars from {from} to {to}, {} {of}", bars.counts.len(), count(all)));
        if bars.scale == Scale::Log {
            out.raw(", on a logarithmic scale");
        }
        let highest = bars.counts.iter().position(|count| *count == greatest).unwrap_or(0) + 1;
        out.raw(&format!("; the highest bar is number {highest}.</title><path class=bar d=\""));
        let (mut pen, many) = (0, bars.counts.len());
        out.raw(&format!("M0 {HEIGHT}"));
        for (bar, rows) in bars.counts.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            // All values alike are a bar in the middle.
            let (start, end) = if many == 1 { (312, 328) } else { (at(bar, many), at(bar + 1, many)) };
            let gap = match end - start {
                0..5 => 0,
                5..8 => 1,
                _ => 2,
            };
            if start > pen {
                out.raw(&format!("m{} 0", start - pen));
            }
            let height = ((*rows as f64 / greatest as f64 * (HEIGHT - 4) as f64).round() as i64).max(2);
            out.raw(&format!("V{}h{}V{HEIGHT}", HEIGHT - height, end - start - gap));
            pen = end - gap;
        }
        out.raw("\"/></svg>");
        let mut said = match (bars.of, bars.rises) {
            (BarsOf::Times, true) => "rows over time".to_owned(),
            (BarsOf::Times, false) => "sampled rows over time".to_owned(),
            (BarsOf::Lengths, _) => "values in a list".to_owned(),
            (BarsOf::Bytes, _) => "bytes of a text, nearly all differ".to_owned(),
            (BarsOf::Values, _) => String::new(),
        };
        let mut say = |text: String| {
            said.push_str(if said.is_empty() { "" } else { ", " });
            said.push_str(&text);
        };
        match bars.width {
            _ if bars.of == BarsOf::Times => {}
            Width::One if many > 1 && bars.of == BarsOf::Values => {
                let empty = bars.counts.iter().filter(|count| **count == 0).count();
                say(if (1..20).contains(&empty) {
                    format!("a bar a value, {empty} empty")
                } else {
                    "a bar a value".into()
                });
            }
            Width::Whole(width) => say(format!("{} values a bar", count(width))),
            Width::One | Width::Part => {}
        }
        if bars.scale == Scale::Log {
            say("log scale".into());
        }
        if bars.outside as f64 >= all as f64 * 5e-4 {
            say(format!("{} outside", words::share(bars.outside, all)));
        }
        if from == to {
            let said = if said.is_empty() { from.to_owned() } else { format!("{from} {said}") };
            axis(["", &said, ""], out);
        } else {
            axis([from, &said, to], out);
        }
    }

    /// Writes the shares of true and false.
    fn split(&self, labels: &Labels, out: &mut Html) {
        let of = |text: &str| labels.commonest.iter().find(|label| label.text == text).map_or(0, |label| label.count);
        let (trues, falses) = (of("true"), of("false"));
        let (all, x) = (trues + falses, part(trues, trues + falses, WIDTH as i64));
        out.raw(&format!("<svg class=split viewBox=\"0 0 {WIDTH} 22\" preserveAspectRatio=none role=img"));
        out.raw(&format!(" data-counts={trues},{falses}><title>Shares of "));
        self.named(out);
        let [yes, no] = [trues, falses].map(|count| words::share(count, all));
        out.raw(&format!(": true {yes}, false {no}.</title><path class=s3 d=\"M0 0H{WIDTH}V22H0\"/>"));
        out.raw(&format!("<path class=bar d=\"M0 0H{x}V22H0\"/></svg><div class=ax><span><b>true</b> {yes}</span>"));
        out.raw(&format!("<span></span><span><b>false</b> {no}</span></div>"));
    }

    /// Writes the commonest labels.
    fn labels(&self, labels: &Labels, out: &mut Html) {
        let greatest = labels.commonest.first().map_or(1, |label| label.count).max(labels.others[1]);
        out.raw("<ol class=cats>");
        let mut bar = |class: &str, text: &dyn Fn(&mut Html), rows: u64| {
            out.raw(&format!("<li data-count={rows}>"));
            text(out);
            out.raw("<svg viewBox=\"0 0 640 9\" preserveAspectRatio=none aria-hidden=true>");
            let (x, share) = (part(rows, greatest, WIDTH as i64).max(2), words::share(rows, labels.rows));
            out.raw(&format!("<path class={class} d=\"M0 0H{x}V9H0\"/></svg><span>{share}</span>"));
        };
        for label in &labels.commonest {
            bar(
                "bar",
                &|out| {
                    out.raw("<b>");
                    let text = if label.text.is_empty() { "(empty)" } else { &label.text };
                    out.text(text, MOST_LABEL).raw("</b>");
                },
                label.count,
            );
        }
        if labels.others[0] > 0 {
            let text = format!("<em>{} more</em>", count(labels.others[0]));
            bar("s2", &|out| _ = out.raw(&text), labels.others[1]);
        }
        out.raw("</ol>");
    }

    /// Writes the picture over the rows.
    pub fn trace(&self, picture: &Picture, out: &mut Html) {
        let trace = &picture.trace;
        self.begin(HEIGHT, out);
        if !self.has_same_rows {
            let stretches = &self.look.stretches;
            let starts: Vec<String> = stretches.iter().map(|stretch| stretch.start.to_string()).collect();
            out.raw(" data-rows=").raw(&starts.join(","));
            let lengths: Vec<String> =
                stretches.iter().map(|stretch| (stretch.end - stretch.start).to_string()).collect();
            match lengths.iter().all(|length| *length == lengths[0]) {
                true => out.raw(&format!(" data-length={}", lengths[0])),
                false => out.raw(" data-length=").raw(&lengths.join(",")),
            };
        }
        let counts: [(&str, fn(&Stretch) -> u64); 2] = [("missing", |one| one.missing), ("nan", |one| one.nans)];
        for (name, of) in counts {
            if trace.stretches.iter().any(|stretch| of(stretch) > 0) {
                let all: Vec<String> = trace.stretches.iter().map(|stretch| of(stretch).to_string()).collect();
                out.raw(&format!(" data-{name}={}", all.join(",")));
            }
        }
        out.raw("><title>");
        self.named(out);
        let said = match &picture.values {
            Values::Bars(_) => self.band(trace, out),
            Values::Labels(labels) if labels.are_booleans => self.trues(labels, trace, out),
            Values::Labels(labels) => self.shares(labels, trace, out),
        };
        self.missing(trace, out);
        out.raw("</svg>");
        axis(["row 0", &said, &count(self.rows.saturating_sub(1))], out);
    }

    /// Ends the sentence about a picture over the rows.
    fn sentence(&self, out: &mut Html) {
        if let Some(order) = &self.look.numbers.order {
            out.raw(&format!("; {}", order_of(order.of)));
        }
        if let Some(Counted { of: [missing, rows], .. }) = self.look.numbers.missing {
            out.raw(&format!("; missing: {}", words::share(missing, rows)));
        }
        out.raw(".</title>");
    }

    fn band(&self, trace: &Trace, out: &mut Html) -> String {
        let many = trace.stretches.len();
        out.raw(&format!(" over the rows: least, median and greatest value of {many} stretches"));
        self.sentence(out);
        let ends = trace.ends.unwrap_or([0.0, 0.0]);
        let scaled = |value: f64| if trace.scale == Scale::Log { value.ln() } else { value };
        let [low, high] = ends.map(scaled);
        let y = |value: f64| {
            // Halves, since the span of two floats may be none. All values alike lie in the middle.
            let share = (scaled(value) / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            let share = if share.is_nan() { 0.5 } else { share.clamp(0.0, 1.0) };
            OVER - 2 - (share * (OVER - 4) as f64).round() as i64
        };
        let (mut band, mut medians) = (String::new(), String::new());
        let drawn = trace.stretches.iter().map(|stretch| stretch.values.map(|values| values.map(y)));
        let drawn: Vec<Option<[i64; 3]>> = drawn.collect();
        for run in runs(&drawn) {
            let (start, end) = (at(run.start, many), at(run.end, many));
            let stretches = || run.clone().filter_map(|stretch| Some((stretch, drawn[stretch]?)));
            band.push_str(&format!("M{start} "));
            for (stretch, [low, _, high]) in stretches() {
                // A band is at least two units high.
                let top = high.min(low - 2);
                band.push_str(&format!(
                    "{}{top}H{}",
                    if stretch == run.start { "" } else { "V" },
                    at(stretch + 1, many)
                ));
            }
            for (stretch, [low, ..]) in stretches().collect::<Vec<_>>().into_iter().rev() {
                band.push_str(&format!("V{low}H{}", at(stretch, many)));
            }
            let middle = |stretch: usize| (at(stretch, many) + at(stretch + 1, many)) / 2;
            medians.push('M');
            let points = stretches().map(|(stretch, [_, median, _])| format!("{} {median}", middle(stretch)));
            medians.push_str(&points.collect::<Vec<_>>().join(" "));
            if run.len() == 1 {
                medians.push_str(&format!("H{end}"));
            }
        }
        out.raw("<path class=band d=\"").raw(&band).raw("\"/><path class=med d=\"").raw(&medians).raw("\"/>");
        match (trace.scale, trace.is_cut) {
            (Scale::Log, _) => "log scale".to_owned(),
            (_, true) => "cut at far values".to_owned(),
            _ => String::new(),
        }
    }

    /// Draws the share of true over the rows.
    fn trues(&self, labels: &Labels, trace: &Trace, out: &mut Html) -> String {
        let none = Vec::new();
        let over = |text: &str| labels.commonest.iter().find(|label| label.text == text).map_or(&none, |one| &one.over);
        let (trues, falses) = (over("true"), over("false"));
        let shares = (0..trace.stretches.len()).map(|at| {
            let [yes, no] = [trues, falses].map(|over| over.get(at).copied().unwrap_or(0) as f64);
            if yes + no > 0.0 { yes / (yes + no) } else { 0.0 }
        });
        let shares: Vec<f64> = shares.collect();
        let top = (shares.iter().copied().fold(0.0, f64::max) * 1.3).clamp(0.01, 1.0);
        let top = if top > 0.6 { 1.0 } else { top };
        let top_said = words::share((top * 1000.0).round() as u64, 1000);
        out.raw(&format!(" over the rows: share of true, 0 to {top_said}"));
        self.sentence(out);
        out.raw("<path class=band d=\"");
        self.skyline(shares.iter().map(|share| share / top), out);
        out.raw("\"/>");
        format!("true: 0 to {top_said}")
    }

    /// Draws the shares of the commonest labels over the rows, one above the other, the commonest lowest.
    fn shares(&self, labels: &Labels, trace: &Trace, out: &mut Html) -> String {
        out.raw(" over the rows: shares of ");
        for (at, label) in labels.commonest.iter().enumerate() {
            out.raw(if at > 0 { ", " } else { "" }).text(&label.text, MOST_NAME / 2);
        }
        self.sentence(out);
        // Each is drawn with all below it, the highest first, so that lower ones cover it.
        for last in (0..labels.commonest.len()).rev() {
            let below: &[Label] = &labels.commonest[..=last];
            let share = |(at, rows): (usize, u64)| {
                let sum: u64 = below.iter().filter_map(|label| label.over.get(at)).sum();
                if rows > 0 { sum as f64 / rows as f64 } else { 0.0 }
            };
            out.raw(&format!("<path class=s{last} d=\""));
            self.skyline(trace.stretches.iter().map(|stretch| stretch.rows).enumerate().map(share), out);
            out.raw("\"/>");
        }
        String::new()
    }

    /// Draws shares of the height as one area.
    fn skyline(&self, shares: impl ExactSizeIterator<Item = f64>, out: &mut Html) {
        let (many, mut before) = (shares.len(), OVER);
        out.raw(&format!("M0 {OVER}"));
        for (stretch, share) in shares.enumerate() {
            let y = OVER - (share.clamp(0.0, 1.0) * OVER as f64).round() as i64;
            if y != before {
                out.raw(&format!("V{y}"));
            }
            out.raw(&format!("H{}", at(stretch + 1, many)));
            before = y;
        }
        out.raw(&format!("V{OVER}"));
    }

    /// Draws what is missing or no number, by share.
    fn missing(&self, trace: &Trace, out: &mut Html) {
        out.raw(&format!("<path class=base d=\"M0 {0}H{WIDTH}\"/>", HEIGHT - 1));
        let gaps = |stretch: &Stretch| stretch.missing + stretch.nans;
        if trace.stretches.iter().all(|stretch| gaps(stretch) == 0) {
            return;
        }
        out.raw("<path class=miss d=\"");
        let (mut pen, many) = (0, trace.stretches.len());
        out.raw(&format!("M0 {HEIGHT}"));
        for (stretch, of) in trace.stretches.iter().enumerate().filter(|(_, of)| gaps(of) > 0) {
            let (start, end) = (at(stretch, many), at(stretch + 1, many));
            if start > pen {
                out.raw(&format!("m{} 0", start - pen));
            }
            let height = part(gaps(of), of.rows, 12).max(3);
            out.raw(&format!("v-{height}h{}v{height}", end - start));
            pen = end;
        }
        out.raw("\"/>");
    }
}

/// Runs of stretches that have values.
fn runs(drawn: &[Option<[i64; 3]>]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..drawn.len()).filter(|at| drawn[*at].is_some()) {
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end += 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// A share of a length, in whole units.
fn part(part: u64, of: u64, length: i64) -> i64 {
    (part as f64 / of.max(1) as f64 * length as f64).round() as i64
}

fn axis(texts: [&str; 3], out: &mut Html) {
    let [from, said, to] = texts;
    out.raw(&format!("<div class=ax><span>{from}</span><span>{said}</span><span>{to}</span></div>"));
}

/// Names an order.
pub fn order_of(order: Order) -> &'static str {
    match order {
        Order::Rising => "rising",
        Order::Falling => "falling",
        Order::Constant => "constant",
    }
}

/// Writes the figures of a column.
pub fn figures(numbers: &Numbers, out: &mut Html) {
    fn mark<T>(figure: &Counted<T>) -> &'static str {
        if figure.is_exact { "" } else { " <u>≈</u>" }
    }
    out.raw("<dl>");
    for (name, figure) in [("least", &numbers.least), ("median", &numbers.median), ("greatest", &numbers.greatest)] {
        if let Some(figure) = figure {
            out.raw(&format!("<dt>{name}</dt><dd>{}{}</dd>", figure.of.0, mark(figure)));
        }
    }
    if let Some(order) = &numbers.order {
        out.raw(&format!("<dt>order</dt><dd>{}{}</dd>", order_of(order.of), mark(order)));
    }
    if let Some(distinct) = &numbers.distinct {
        out.raw(&format!("<dt>distinct</dt><dd>{}{}</dd>", count(distinct.of), mark(distinct)));
    }
    for (name, figure) in [("NaN", &numbers.nans), ("missing", &numbers.missing)] {
        if let Some(figure) = figure {
            let [part, of] = figure.of;
            let class = if part > 0 { " class=m" } else { "" };
            out.raw(&format!("<dt>{name}</dt><dd{class}>{}{}</dd>", words::share(part, of), mark(figure)));
        }
    }
    out.raw("</dl>");
}
