//! Random starts within a region: multiples of the alignment from which the whole request fits.

use super::deck::Choice;
use super::permutation::Permutation;
use super::random::{Purpose, Random};
use super::ranks::{Normal, Pareto, Zipf};
use super::spec::{Distribution, Region, Zone};

/// Tries before a skewed draw that keeps missing the room for its request is replaced by a uniform one.
/// Only requests nearly as large as the region, or a σ of many regions, ever get there.
const TRIES_MAX: u32 = 64;

/// How a start is drawn.
#[derive(Debug, Clone)]
enum Picker {
    Uniform,
    Zipf(Zipf, Permutation),
    Pareto(Pareto, Permutation),
    Normal {
        sigma_ratio: f64,
        normal: Normal,
    },
    Zoned {
        choice: Choice,
        zones_count: usize,
        spans: Vec<Span>,
    },
}

/// A run of starts.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: u64,
    count: u64,
}

/// Draws starts, in blocks from the region's first block.
#[derive(Debug, Clone)]
pub(super) struct Positions {
    align_blocks: u64,
    /// Starts that have room for the request, per size.
    starts: Vec<u64>,
    picker: Picker,
    random: Random,
}

impl Positions {
    /// For requests of these sizes, none larger than the region.
    pub(super) fn new(
        distribution: &Distribution,
        region: Region,
        align_blocks: u32,
        sizes: &[u32],
        seed: u64,
    ) -> Self {
        let align_blocks = u64::from(align_blocks);
        let starts: Vec<u64> = sizes
            .iter()
            .map(|&blocks| (region.blocks - u64::from(blocks)) / align_blocks + 1)
            .collect();
        // Ranks stand for the same places whatever the size, so that all sizes share the hot spots.
        let ranks = starts.iter().copied().max().unwrap_or(1);
        let picker = match distribution {
            Distribution::Uniform => Picker::Uniform,
            Distribution::Zipf(theta) => {
                Picker::Zipf(Zipf::new(ranks, *theta), Permutation::new(ranks, seed))
            }
            Distribution::Pareto(h) => {
                Picker::Pareto(Pareto::new(ranks, *h), Permutation::new(ranks, seed))
            }
            Distribution::Normal(sigma_pct) => Picker::Normal {
                sigma_ratio: sigma_pct / 100.0,
                normal: Normal::default(),
            },
            Distribution::Zoned(zones) => zoned(zones, region, align_blocks, &starts, seed),
        };
        Self {
            align_blocks,
            starts,
            picker,
            random: Random::new(seed, Purpose::Position),
        }
    }

    /// The next start for a request of the size at `size_index`.
    #[inline]
    pub(super) fn draw(&mut self, size_index: usize) -> u64 {
        let start = if let Picker::Uniform = self.picker {
            self.random.below(self.starts[size_index])
        } else {
            self.draw_skewed(size_index)
        };
        start * self.align_blocks
    }

    /// Out of line: the logarithms in here would cost the uniform draw a large stack frame.
    #[inline(never)]
    fn draw_skewed(&mut self, size_index: usize) -> u64 {
        let starts = self.starts[size_index];
        let random = &mut self.random;
        match &mut self.picker {
            Picker::Uniform => random.below(starts),
            Picker::Zipf(zipf, permutation) => fitting(random, starts, |random| {
                Some(permutation.place(zipf.draw(random)))
            }),
            Picker::Pareto(pareto, permutation) => fitting(random, starts, |random| {
                Some(permutation.place(pareto.draw(random)))
            }),
            Picker::Normal {
                sigma_ratio,
                normal,
            } => fitting(random, starts, |random| {
                let place = starts as f64 * (0.5 + *sigma_ratio * normal.draw(random));
                (place >= 0.0).then_some(place as u64)
            }),
            Picker::Zoned {
                choice,
                zones_count,
                spans,
            } => {
                let span = spans[size_index * *zones_count + choice.draw()];
                span.first + random.below(span.count)
            }
        }
    }
}

/// Draws until the start has room for the request.
#[inline]
fn fitting(
    random: &mut Random,
    starts: u64,
    mut draw: impl FnMut(&mut Random) -> Option<u64>,
) -> u64 {
    for _ in 0..TRIES_MAX {
        if let Some(start) = draw(random).filter(|&start| start < starts) {
            return start;
        }
    }
    random.below(starts)
}

/// Zones hold the starts that lie in them. A zone with no start of its own (smaller than the alignment,
/// or so near the end that nothing fits) takes the next start, or the last.
fn zoned(zones: &[Zone], region: Region, align_blocks: u64, starts: &[u64], seed: u64) -> Picker {
    let size_sum: f64 = zones.iter().map(|zone| zone.size_pct).sum();
    let mut passed = 0.0;
    let mut borders = vec![0_u64];
    for zone in zones {
        passed += zone.size_pct;
        borders.push((region.blocks as f64 * (passed / size_sum)).round() as u64);
    }
    let first_start = |border: u64| border.div_ceil(align_blocks);
    let spans = starts.iter().flat_map(|&starts| {
        borders.windows(2).map(move |pair| {
            let first = first_start(pair[0]).min(starts - 1);
            let end = first_start(pair[1]).min(starts);
            Span {
                first,
                count: end.saturating_sub(first).max(1),
            }
        })
    });
    let shares: Vec<f64> = zones.iter().map(|zone| zone.access_pct).collect();
    Picker::Zoned {
        choice: Choice::new(&shares, seed, Purpose::Zones),
        zones_count: zones.len(),
        spans: spans.collect(),
    }
}
