//! Do the intervals of a comparison keep their word? A thousand comparisons of known truth, with the stopping
//! rule on, over noise of several kinds.

use lanemark::method::compare::judge::{Judgement, Rules, Scale, judge, relative_half_width};
use lanemark::method::compare::stats::mean;
use lanemark::method::compare::stopping::{Next, Stopping};
use lanemark::record::ComparisonVerdict;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SEEDS_COUNT: u64 = 1000;
/// Latency of side A, in µs.
const BASE: f64 = 100.0;
/// Noise of one window, in µs.
const NOISE: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    Normal,
    /// As the simulated device draws its service times.
    Uniform,
    /// Over time the device gets slower, faster and faster.
    Drift,
    /// One window in twenty meets something else: up to eight times the noise, and only upwards.
    Outliers,
}

/// Two simulated sides that are measured in turn.
struct Bench {
    noise: Noise,
    difference: f64,
    windows_count: u32,
    rng: Xoshiro256PlusPlus,
}

impl Bench {
    fn new(noise: Noise, difference: f64, seed: u64) -> Self {
        Self {
            noise,
            difference,
            windows_count: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn window(&mut self) -> f64 {
        let age = f64::from(self.windows_count);
        self.windows_count += 1;
        // Twelve uniforms make a normal variable as far as anything here can tell.
        let is_odd = self.unit() < 0.05;
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        BASE + NOISE
            * match self.noise {
                Noise::Normal => normal,
                Noise::Uniform => (self.unit() - 0.5) * 12_f64.sqrt(),
                Noise::Drift => normal + 0.5 * age + 0.01 * age * age,
                Noise::Outliers if is_odd => normal + 8.0 * self.unit(),
                Noise::Outliers => normal,
            }
    }

    /// A B B A and B A A B in turn, as live comparisons measure; each side's mean.
    fn round(&mut self, number: u32) -> (f64, f64) {
        let (mut a, mut b) = (0.0, 0.0);
        for is_b in lanemark::method::compare::order(number) {
            let value = self.window();
            if is_b {
                b += value + self.difference;
            } else {
                a += value;
            }
        }
        (a / 2.0, b / 2.0)
    }
}

const SCALE: Scale = Scale {
    more_is_better: false,
    resolution_ratio: 0.0,
};

/// One whole comparison: what it came to, and after how many rounds.
fn compare(
    bench: &mut Bench,
    rounds_max: u32,
    precision: Option<f64>,
    seed: u64,
) -> (Judgement, u32) {
    let mut stopping = Stopping::new(rounds_max, precision);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let rules = |ended_early| Rules {
        equal_within_pct: 1.0,
        ended_early,
        is_paired: true,
        seed,
    };
    for number in 0.. {
        let (one, other) = bench.round(number);
        a.push(Some(one));
        b.push(Some(other));
        let done = number + 1;
        let widest = (stopping.looks_after(done))
            .then(|| relative_half_width(&a, &b, SCALE, rules(false)).unwrap());
        let next = stopping.after(done, widest);
        if next != Next::Round {
            return (judge(&a, &b, SCALE, rules(next == Next::Narrow)), done);
        }
    }
    unreachable!("the limit of rounds holds")
}

/// The true standard error of a round's difference: what an oracle knows.
fn round_error(noise: Noise) -> f64 {
    let mut bench = Bench::new(noise, 0.0, 4711);
    let differences: Vec<f64> = (0..40_000)
        .map(|number| {
            if number % 20 == 0 {
                bench.windows_count = 0;
            }
            let (a, b) = bench.round(number % 20);
            b - a
        })
        .collect();
    let center = mean(&differences).unwrap();
    let squares: Vec<f64> = differences.iter().map(|d| (d - center).powi(2)).collect();
    mean(&squares).unwrap().sqrt()
}

/// Coverage, share of comparisons that called a difference, and width as a multiple of the oracle's.
fn thousand(
    noise: Noise,
    difference: f64,
    rounds_max: u32,
    precision: Option<f64>,
) -> (f64, f64, f64) {
    let error = round_error(noise);
    let (mut held, mut called, mut width) = (0, 0, 0.0);
    for seed in 0..SEEDS_COUNT {
        let mut bench = Bench::new(noise, difference, seed * 2 + 1);
        let (judged, done) = compare(&mut bench, rounds_max, precision, seed);
        let (low, high) = (
            judged.difference.low.unwrap(),
            judged.difference.high.unwrap(),
        );
        held += u32::from(low <= difference && difference <= high);
        called += u32::from(matches!(
            judged.verdict,
            ComparisonVerdict::ABetter | ComparisonVerdict::BBetter
        ));
        width += (high - low) / 2.0 / (1.96 * error / f64::from(done).sqrt());
    }
    let share = |count: u32| f64::from(count) / SEEDS_COUNT as f64;
    (share(held), share(called), width / SEEDS_COUNT as f64)
}

fn holds(noise: Noise) {
    for rounds_max in [6, 10, 20] {
        // So narrow that the rule ends some comparisons at almost every look.
        for precision in [None, Some(0.65 * round_error(noise) / BASE)] {
            let what = format!("{noise:?}, {rounds_max} rounds, precision {precision:?}");
            if rounds_max == 6 && precision.is_some() {
                continue; // The first look is after six rounds.
            }
            let (coverage, _, width) = thousand(noise, 5.0, rounds_max, precision);
            assert!((0.93..=0.97).contains(&coverage), "{what}: {coverage}");
            assert!(width <= 1.3, "{what}: {width}");
            if noise != Noise::Normal {
                continue;
            }
            let (_, called, _) = thousand(noise, 0.0, rounds_max, precision);
            assert!(called <= 0.065, "{what}: {called}");
        }
    }
}

#[test]
fn intervals_keep_their_word_over_normal_noise() {
    holds(Noise::Normal);
}

#[test]
fn intervals_keep_their_word_over_uniform_noise() {
    holds(Noise::Uniform);
}

#[test]
fn intervals_keep_their_word_while_the_device_drifts() {
    holds(Noise::Drift);
}

#[test]
fn intervals_keep_their_word_among_outliers() {
    holds(Noise::Outliers);
}

/// 5 µs in 100, noise of 2: every comparison of ten rounds has to see it, and on the right side.
#[test]
fn a_known_difference_is_found() {
    for noise in [Noise::Normal, Noise::Uniform, Noise::Drift] {
        for seed in 0..50 {
            let (judged, _) = compare(&mut Bench::new(noise, 5.0, seed), 10, None, seed);
            assert_eq!(
                judged.verdict,
                ComparisonVerdict::ABetter,
                "{noise:?} {seed}"
            );
        }
    }
}

/// Why it is not simply a percentile bootstrap: at six rounds that holds the truth nine times in ten.
#[test]
fn a_percentile_bootstrap_would_not_do() {
    let mut held = 0;
    for seed in 0..SEEDS_COUNT {
        let mut bench = Bench::new(Noise::Normal, 5.0, seed * 2 + 1);
        let differences: Vec<f64> = (0..6)
            .map(|number| {
                let (a, b) = bench.round(number);
                b - a
            })
            .collect();
        let mut means: Vec<f64> = (0..399)
            .map(|_| {
                (0..6)
                    .map(|_| differences[(bench.unit() * 6.0) as usize])
                    .sum::<f64>()
                    / 6.0
            })
            .collect();
        means.sort_by(f64::total_cmp);
        held += u64::from(means[9] <= 5.0 && 5.0 <= means[389]);
    }
    assert!(held < SEEDS_COUNT * 92 / 100, "{held}");
}
