//! Pictures of columns: SVG in whole numbers, 640 units wide.

use std::ops::Range;

use super::html::Html;
use super::look::{
    Bars, BarsOf, ColumnLook, ColumnPicture, Counted, Figures, Form, Kind, Label, Labels, Number, Order, Scale,
    Stretch, Trace, Values, Width, words,
};
use crate::activity::words::count;
use arrow_schema::DataType;

/// Width and height of a picture.
const WIDTH: usize = 640;
const HEIGHT: i64 = 104;

/// Height of the part that shows values over the rows; the strip of missing values lies below.
const OVER: i64 = 88;

/// From this width on, the whole numbers in a bar have four digits.
const MOST_COUNTED: u64 = 1_000_000_000;

/// Most bytes of a name within a sentence.
const MOST_NAME: usize = 48;

/// Most characters of the three texts below a picture that lie on a line.
const MOST_OF_AXIS: usize = 46;

/// Most bytes of a label.
const MOST_LABEL: usize = 72;

/// Where one of `bars` bars begins.
fn at(bar: usize, bars: usize) -> usize {
    bar * WIDTH / bars.max(1)
}

/// Most bytes of texts around the pictures of a column, and of its figures: of one with labels less, since it has one
/// axis, and two figures.
const MOST_AROUND: usize = 1_100;
const MOST_AROUND_LABELS: usize = 900;

/// Most bytes of the pictures and figures of a column of `rows` rows, for any values.
pub fn most_bytes(data_type: &DataType, nullable: bool, rows: u64) -> usize {
    let digits = rows.checked_ilog10().unwrap_or(0) as usize + 1;
    let kind = Kind::of(data_type);
    // `V100h4` is a bar without a gap, `V104m2 0V4h11` one behind a gap; counts of bars together are at most the rows.
    let values = match kind {
        Kind::Plain => return MOST_AROUND,
        Kind::Whole(Form::Instant(_)) => 160 * (6 + digits),
        Kind::Whole(_) => 130 * (7 + digits),
        Kind::Lengths => 130 * (7 + 4),
        Kind::Real => 48 * (13 + digits),
        Kind::Labels => 6 * 115 + 5 * MOST_LABEL,
        Kind::Booleans => 0,
    };
    // Up and back, `V86h10`, and the medians.
    let trace = match kind {
        // Texts that all differ have bars of their lengths, and a band: less.
        Kind::Labels => 6 * (64 * 6 + 32),
        Kind::Booleans => 64 * 6,
        _ => 64 * (6 + 7 + 5),
    };
    // Only stretches of values that vary in length are cut short.
    let is_coded = matches!(data_type, DataType::Dictionary(..));
    let lengths = if matches!(kind, Kind::Labels | Kind::Lengths) && !is_coded { 64 * 5 } else { 0 };
    let gaps = if nullable || kind == Kind::Real { 64 * 8 + 64 * 5 } else { 0 };
    let nans = if kind == Kind::Real { 64 * 5 } else { 0 };
    let around = if kind == Kind::Labels { MOST_AROUND_LABELS } else { MOST_AROUND };
    around + values + trace + 64 * (digits + 1) + lengths + gaps + nans
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
    pub fn values(&self, picture: &ColumnPicture, out: &mut Html) {
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
        let of = match bars.rises {
            true => "rows",
            false if self.look.is_whole => "values",
            false => "sampled values",
        };
        out.raw(&format!(": {} bars from {from} to {to}, {} {of}", bars.counts.len(), count(all)));
        if bars.scale == Scale::Log {
            out.raw(", on a logarithmic scale");
        }
        let highest = bars.counts.iter().position(|count| *count == greatest).unwrap_or(0) + 1;
        out.raw(&format!("; the highest bar is number {highest}.</title>"));
        let many = bars.counts.len();
        let gap = match many {
            1 | 65.. => 0,
            49..65 => 1,
            _ => 2,
        };
        let drawn = bars.counts.iter().enumerate().map(|(bar, rows)| {
            // All values alike are a bar in the middle.
            let place = if many == 1 { 312..328 } else { at(bar, many)..at(bar + 1, many) - gap };
            let height = if *rows == 0 { 0 } else { part(*rows, greatest, HEIGHT - 4).max(2) };
            (place, height)
        });
        out.raw("<path class=bar d=\"");
        areas(drawn, HEIGHT, out);
        out.raw("\"/></svg>");
        let distinct = self.look.numbers.distinct.as_ref().map(|distinct| distinct.of);
        let said = about(bars, all, distinct, self.look.is_whole);
        if from == to {
            let divider = match bars.of {
                _ if said.is_empty() => "",
                // `29 bytes in each text`
                BarsOf::Lengths | BarsOf::Bytes => " ",
                BarsOf::Values | BarsOf::Times => ", ",
            };
            let said = format!("{from}{divider}{said}");
            axis(["", &if from == "1" { said.replacen("s in each", " in each", 1) } else { said }, ""], out);
        } else {
            axis([from, &said, to], out);
        }
    }

    /// Writes the shares of true and false.
    fn split(&self, labels: &Labels, out: &mut Html) {
        let [trues, falses] = ["true", "false"].map(|text| labels.named(text).map_or(0, |label| label.count));
        let all = trues + falses;
        out.raw(&format!("<svg class=split role=img data-counts={trues},{falses}><title>Shares of "));
        self.named(out);
        let [yes, no] = [trues, falses].map(|count| share(count, all));
        out.raw(&format!(": true {yes}, false {no}.</title><rect class=s3 width=100% height=22 />"));
        out.raw(&format!("<rect class=bar width={}% height=22 /></svg>", percent(trues, all)));
        axis([&format!("<b>true</b> {yes}"), "", &format!("<b>false</b> {no}")], out);
    }

    /// Writes the commonest labels.
    fn labels(&self, labels: &Labels, out: &mut Html) {
        let greatest = labels.commonest.first().map_or(1, |label| label.count).max(labels.others[1]);
        out.raw("<ol class=cats>");
        for (at, Label { text, count, .. }) in labels.commonest.iter().enumerate() {
            let text = if text.is_empty() { "(empty)" } else { text };
            out.raw(&format!("<li data-count={count}><b>")).text(text, MOST_LABEL).raw("</b>");
            label_bar(&format!("s{at}"), *count, greatest, labels.rows, out);
        }
        let [others, rows] = labels.others;
        if others > 0 {
            out.raw(&format!("<li data-count={rows}><em>{} more</em>", count(others)));
            label_bar("so", rows, greatest, labels.rows, out);
        }
        out.raw("</ol>");
    }

    /// Writes the picture over the rows.
    pub fn trace(&self, picture: &ColumnPicture, out: &mut Html) {
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
        for (name, all) in [
            ("missing", trace.stretches.iter().map(|one| one.missing).collect::<Vec<_>>()),
            ("nan", trace.stretches.iter().map(|one| one.nans).collect()),
        ] {
            if all.iter().any(|count| *count > 0) {
                let all: Vec<String> = all.iter().map(u64::to_string).collect();
                out.raw(&format!(" data-{name}={}", all.join(",")));
            }
        }
        out.raw("><title>");
        self.named(out);
        let said = match &picture.values {
            Values::Bars(bars) => self.band(bars.of, trace, out),
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
            out.raw(&format!("; missing: {}", share(missing, rows)));
        }
        out.raw(".</title>");
    }

    fn band(&self, of: BarsOf, trace: &Trace, out: &mut Html) -> String {
        let many = trace.stretches.len();
        let are_lengths = matches!(of, BarsOf::Lengths | BarsOf::Bytes);
        let what = if are_lengths { "length" } else { "value" };
        out.raw(&format!(" over the rows: least, median and greatest {what} of {many} stretches"));
        self.sentence(out);
        let ends = trace.ends.unwrap_or([0.0, 0.0]).map(|end| scaled(end, trace.scale));
        let (mut band, mut medians) = (String::new(), String::new());
        let drawn = trace.stretches.iter().map(|stretch| {
            let values = stretch.values?;
            Some(values.map(|value| height(scaled(value, trace.scale), ends)))
        });
        let drawn: Vec<Option<[i64; 3]>> = drawn.collect();
        for run in runs(&drawn) {
            let stretches =
                run.clone().filter_map(|stretch| Some((at(stretch, many), at(stretch + 1, many), drawn[stretch]?)));
            let stretches: Vec<(usize, usize, [i64; 3])> = stretches.collect();
            for (number, &(start, end, [low, _, high])) in stretches.iter().enumerate() {
                // A band is at least two units high.
                let top = high.min(low - 2);
                band.push_str(&if number == 0 { format!("M{start} {top}") } else { format!("V{top}") });
                band.push_str(&format!("h{}", end - start));
            }
            for &(start, end, [low, ..]) in stretches.iter().rev() {
                band.push_str(&format!("V{low}h-{}", end - start));
            }
            // From middle to middle: the first place, then how far it is to the next.
            let mut before: Option<(i64, i64)> = None;
            for (start, end, [_, median, _]) in stretches {
                let middle = (start + end) as i64 / 2;
                match before.replace((middle, median)) {
                    None => medians.push_str(&format!("M{middle} {median}l")),
                    Some((x, y)) => medians.push_str(&format!("{} {} ", middle - x, median - y)),
                }
            }
            let last = medians.trim_end_matches([' ', 'l']).len();
            medians.truncate(last);
            if run.len() == 1 {
                medians.push_str(&format!("h{}", at(run.end, many) as i64 - before.map_or(0, |(x, _)| x)));
            }
        }
        out.raw("<path class=band d=\"").raw(&band).raw("\"/><path class=med d=\"").raw(&medians).raw("\"/>");
        let scale = match (trace.scale, trace.is_cut) {
            (Scale::Log, _) => "log scale",
            (_, true) => "cut at far values",
            _ => "",
        };
        [if are_lengths { "length" } else { "" }, scale]
            .into_iter()
            .filter(|said| !said.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Draws the share of true over the rows.
    fn trues(&self, labels: &Labels, trace: &Trace, out: &mut Html) -> String {
        let counts = ["true", "false"].map(|text| labels.named(text));
        let shares = (0..trace.stretches.len()).map(|at| {
            let [yes, no] =
                counts.map(|label| label.and_then(|label| label.over.get(at)).map_or(0.0, |rows| *rows as f64));
            if yes + no > 0.0 { yes / (yes + no) } else { 0.0 }
        });
        let shares: Vec<f64> = shares.collect();
        let top = (shares.iter().copied().fold(0.0, f64::max) * 1.3).clamp(0.01, 1.0);
        let top = if top > 0.6 { 1.0 } else { top };
        let top_said = share((top * 1000.0).round() as u64, 1000);
        out.raw(&format!(" over the rows: share of true, 0 to {top_said}"));
        self.sentence(out);
        out.raw("<path class=band d=\"");
        skyline(shares.iter().map(|share| share / top), out);
        out.raw("\"/>");
        format!("true: 0 to {top_said}")
    }

    /// Draws the shares of the commonest labels over the rows, one above the other, the commonest lowest.
    fn shares(&self, labels: &Labels, trace: &Trace, out: &mut Html) -> String {
        out.raw(" over the rows: shares of ");
        for (at, label) in labels.commonest.iter().enumerate() {
            out.raw(if at > 0 { ", " } else { "" }).text(&label.text, MOST_NAME / 2);
        }
        out.raw(if labels.others[0] > 0 { " and others" } else { "" });
        self.sentence(out);
        let draw = |class: &str, rows: &dyn Fn(usize, &Stretch) -> u64, out: &mut Html| {
            let shares = trace.stretches.iter().enumerate().map(|(at, stretch)| {
                if stretch.rows > 0 { rows(at, stretch) as f64 / stretch.rows as f64 } else { 0.0 }
            });
            out.raw(&format!("<path class={class} d=\""));
            skyline(shares, out);
            out.raw("\"/>");
        };
        // Each is drawn with all below it, the highest first, so that lower ones cover it.
        if labels.others[0] > 0 {
            draw("so", &|_, stretch| stretch.rows - stretch.missing, out);
        }
        for last in (0..labels.commonest.len()).rev() {
            let below: &[Label] = &labels.commonest[..=last];
            draw(&format!("s{last}"), &|at, _| below.iter().filter_map(|label| label.over.get(at)).sum(), out);
        }
        String::new()
    }

    /// Draws the shares of missing values and NaN.
    fn missing(&self, trace: &Trace, out: &mut Html) {
        out.raw(&format!("<path class=base d=\"M0 {0}H{WIDTH}\"/>", HEIGHT - 1));
        if trace.stretches.iter().all(|stretch| stretch.gaps() == 0) {
            return;
        }
        let many = trace.stretches.len();
        let bars = trace.stretches.iter().enumerate().map(|(bar, stretch)| {
            let height = match stretch.gaps() {
                0 => 0,
                gaps => part(gaps, stretch.rows, 12).clamp(3, 12),
            };
            (at(bar, many)..at(bar + 1, many), height)
        });
        out.raw("<path class=miss d=\"");
        areas(bars, HEIGHT, out);
        out.raw("\"/>");
    }
}

/// Describes bars of `all` values, below them; of texts, `distinct` differ. `is_whole`: no row is left out.
fn about(bars: &Bars, all: u64, distinct: Option<u64>, is_whole: bool) -> String {
    let mut said: Vec<String> = Vec::new();
    match (bars.of, bars.rises || is_whole) {
        (BarsOf::Times, true) => said.push("rows over time".to_owned()),
        (BarsOf::Times, false) => said.push("sampled rows over time".to_owned()),
        (BarsOf::Lengths, _) => said.push("values in each list".to_owned()),
        (BarsOf::Bytes, _) => {
            let many = if distinct == Some(all) { "all" } else { "most" };
            said.push(format!("bytes in each text, {many} differ"));
        }
        (BarsOf::Values, _) => {}
    }
    match bars.width {
        _ if bars.of == BarsOf::Times => {}
        Width::One if bars.counts.len() > 1 && bars.of == BarsOf::Values => {
            said.push("one bar per value".to_owned());
            let empty = bars.counts.iter().filter(|count| **count == 0).count();
            if (1..20).contains(&empty) {
                said.push(format!("{empty} empty"));
            }
        }
        Width::Whole(width @ ..MOST_COUNTED) => said.push(format!("{} values per bar", count(width))),
        Width::Whole(width) => said.push(format!("{} values per bar", words::real(width as f64))),
        Width::One | Width::Part => {}
    }
    if bars.scale == Scale::Log {
        said.push("log scale".to_owned());
    }
    if bars.outside > 0 {
        said.push(format!("{} outside", share(bars.outside, all)));
    }
    said.join(", ")
}

/// Writes the bar and the share of a label.
fn label_bar(class: &str, rows: u64, greatest: u64, all: u64, out: &mut Html) {
    let width = percent(rows, greatest);
    out.raw(&format!("<svg aria-hidden=true><rect class={class} width={width}% height=9 /></svg>"));
    out.raw(&format!("<span>{}</span>", share(rows, all)));
}

/// A value, or its logarithm.
fn scaled(value: f64, scale: Scale) -> f64 {
    if scale == Scale::Log { value.ln() } else { value }
}

/// Where a value lies between the ends of the axis over the rows, counted downwards.
fn height(value: f64, [low, high]: [f64; 2]) -> i64 {
    // Halves, since the span of two floats may overflow. All values alike lie in the middle.
    let share = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    let share = if share.is_nan() { 0.5 } else { share.clamp(0.0, 1.0) };
    OVER - 2 - (share * (OVER - 4) as f64).round() as i64
}

/// Draws shares of the height as one area.
fn skyline(shares: impl ExactSizeIterator<Item = f64>, out: &mut Html) {
    let many = shares.len();
    let bars = shares.enumerate().map(|(stretch, share)| {
        (at(stretch, many)..at(stretch + 1, many), (share.clamp(0.0, 1.0) * OVER as f64).round() as i64)
    });
    areas(bars, OVER, out);
}

/// Draws bars of these heights that stand on a line, each at its place: those without a gap as one area.
fn areas(bars: impl Iterator<Item = (Range<usize>, i64)>, base: i64, out: &mut Html) {
    let (mut pen, mut before) = (0, base);
    out.raw(&format!("M0 {base}"));
    for (place, height) in bars.filter(|(_, height)| *height > 0) {
        if place.start > pen {
            if before < base {
                out.raw(&format!("V{base}"));
            }
            out.raw(&format!("m{} 0", place.start - pen));
            before = base;
        }
        let y = base - height;
        if y != before {
            out.raw(&format!("V{y}"));
        }
        out.raw(&format!("h{}", place.len()));
        (pen, before) = (place.end, y);
    }
    out.raw(&format!("V{base}"));
}

/// A share as text: it may begin with `<`.
fn share(part: u64, of: u64) -> String {
    words::share(part, of).replace('<', "&lt;").replace('>', "&gt;")
}

/// A share in percent, to a tenth.
fn percent(part: u64, of: u64) -> String {
    let text = format!("{:.1}", part as f64 / of.max(1) as f64 * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Runs of stretches that have values.
fn runs(drawn: &[Option<[i64; 3]>]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
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
    // Where the three have no room on a line, the text between the ends has one of its own.
    let length: usize = texts.iter().map(|text| text.chars().count()).sum();
    let class = if !said.is_empty() && length > MOST_OF_AXIS { "\"ax l\"" } else { "ax" };
    out.raw(&format!("<div class={class}><span>{from}</span><span>{said}</span><span>{to}</span></div>"));
}

/// Names an order.
pub fn order_of(order: Order) -> &'static str {
    match order {
        Order::Rising => "rising",
        Order::Falling => "falling",
        Order::Constant => "constant",
    }
}

/// Writes the figures of a column; `are_lengths`: those of its lists, not of its values.
pub fn figures(numbers: &Figures, are_lengths: bool, out: &mut Html) {
    fn mark<T>(figure: &Counted<T>) -> &'static str {
        if figure.is_exact { "" } else { " <u>≈</u>" }
    }
    out.raw("<dl>");
    let constant = numbers.order.as_ref().filter(|order| order.of == Order::Constant);
    if let (Some(order), Some(value)) = (constant, &numbers.least) {
        let name = if are_lengths { "length" } else { "always" };
        out.raw(&format!("<dt>{name}</dt><dd>{}{}</dd>", value.of.0, mark(order)));
    }
    let names = if are_lengths { ["shortest", "median length", "longest"] } else { ["least", "median", "greatest"] };
    for (name, figure) in names.into_iter().zip([&numbers.least, &numbers.median, &numbers.greatest]) {
        if let Some(figure) = figure.as_ref().filter(|_| constant.is_none()) {
            out.raw(&format!("<dt>{name}</dt><dd>{}{}</dd>", figure.of.0, mark(figure)));
        }
    }
    if let Some(order) = numbers.order.as_ref().filter(|_| constant.is_none()) {
        let name = if are_lengths { "lengths" } else { "order" };
        out.raw(&format!("<dt>{name}</dt><dd>{}{}</dd>", order_of(order.of), mark(order)));
    }
    if let Some(distinct) = &numbers.distinct {
        out.raw(&format!("<dt>distinct</dt><dd>{}{}</dd>", count(distinct.of), mark(distinct)));
    }
    for (name, figure) in [("NaN", &numbers.nans), ("missing", &numbers.missing)] {
        if let Some(figure) = figure {
            let [part, of] = figure.of;
            let class = if part > 0 { " class=m" } else { "" };
            out.raw(&format!("<dt>{name}</dt><dd{class}>{}{}</dd>", share(part, of), mark(figure)));
        }
    }
    out.raw("</dl>");
}

#[cfg(test)]
mod tests {
    use arrow_schema::{Field, TimeUnit};

    use super::*;

    #[test]
    fn pictures_take_less_than_6_kb() {
        let list = DataType::LargeList(Field::new_list_field(DataType::Int8, true).into());
        let labels = DataType::Dictionary(DataType::Int32.into(), DataType::LargeUtf8.into());
        let times = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let kinds = [DataType::Int64, DataType::Float64, DataType::Boolean, labels, list, times];
        let lengths =
            kinds.map(|kind| most_bytes(&kind, kind != DataType::Timestamp(TimeUnit::Nanosecond, None), 1_000_000_000));
        assert!(lengths.iter().all(|length| *length < 6000), "{lengths:?}");
    }
}
