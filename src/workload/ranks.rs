//! Ranks by popularity: rank 0 is the most popular. O(1) a draw and no table, for any count.
//!
//! Logarithms and powers come from the platform's maths library, whose last bit may differ between
//! libraries: a skewed sequence repeats bit for bit with the same build on the same system.

use super::random::Random;

/// Zipf: rank k (from 0) with a probability in proportion to (k + 1)^-θ.
///
/// Rejection-inversion of Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions" (1996): fewer than 1.1 tries on average whatever θ and count are.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    count: u64,
    theta: f64,
    /// Integral of the hat up to the first rank, and up to the last.
    first: f64,
    last: f64,
    /// Draws this near below a rank are accepted without a look at the hat.
    squeeze: f64,
}

impl Zipf {
    /// `count` is at least 1, `theta` above 0. (θ = 1 would do as well; fio has no such distribution.)
    pub(super) fn new(count: u64, theta: f64) -> Self {
        let mut zipf = Self {
            count,
            theta,
            first: 0.0,
            last: 0.0,
            squeeze: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(count as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// The next rank, below `count`.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let x = self.inverse(area);
            let number = ((x + 0.5) as u64).clamp(1, self.count);
            let nearest = number as f64;
            if nearest - x <= self.squeeze
                || area >= self.integral(nearest + 0.5) - self.weight(nearest)
            {
                return number - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of the weight from 1 to `x`: (x^(1-θ) - 1) / (1-θ), also where θ is near 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let exponent = (1.0 - self.theta) * log;
        if exponent.abs() < 1e-8 {
            return log * (1.0 + exponent / 2.0);
        }
        exponent.exp_m1() / exponent * log
    }

    /// The `x` whose integral is `area`.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding can push it under -1, where the logarithm ends.
        let exponent = (area * (1.0 - self.theta)).max(-1.0);
        if exponent.abs() < 1e-8 {
            return (area * (1.0 - exponent / 2.0)).exp();
        }
        (exponent.ln_1p() / exponent * area).exp()
    }
}

/// Pareto as fio has it: the share 1 - h of the draws falls on the first share h of the ranks, and so
/// on within each part (h = 0.2: 80 to 20). Rank = count · u^(ln h / ln(1 - h)).
#[derive(Debug, Clone)]
pub(super) struct Pareto {
    count: u64,
    power: f64,
}

impl Pareto {
    /// `count` is at least 1, `h` between 0 and 1.
    pub(super) fn new(count: u64, h: f64) -> Self {
        Self {
            count,
            power: h.ln() / (-h).ln_1p(),
        }
    }

    /// The next rank, below `count`.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let rank = self.count as f64 * random.unit().powf(self.power);
        (rank as u64).min(self.count - 1)
    }
}

/// Standard normal numbers by Marsaglia's polar method.
#[derive(Debug, Clone, Default)]
pub(super) struct Normal {
    spare: Option<f64>,
}

impl Normal {
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Random) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * random.unit() - 1.0;
            let y = 2.0 * random.unit() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    fn random() -> Random {
        Random::new(42, Purpose::Position)
    }

    /// Against the definition, for small and large θ and for θ beside 1.
    #[test]
    fn zipf_has_the_frequencies_of_its_definition() {
        for theta in [0.2, 0.8, 0.999_999, 1.000_001, 1.2, 2.5] {
            let count = 1000_u64;
            let zipf = Zipf::new(count, theta);
            let mut random = random();
            let draws = 1_000_000_u32;
            let mut seen = vec![0_u32; count as usize];
            for _ in 0..draws {
                seen[zipf.draw(&mut random) as usize] += 1;
            }
            let weights: Vec<f64> = (1..=count).map(|k| (k as f64).powf(-theta)).collect();
            let sum: f64 = weights.iter().sum();
            // Ranks that are too rare for chi-square are taken together.
            let (mut chi, mut cells, mut rare, mut rare_seen) = (0.0, 0.0, 0.0, 0_u32);
            for (weight, &n) in weights.iter().zip(&seen) {
                let expected = weight / sum * f64::from(draws);
                if expected >= 20.0 {
                    chi += (f64::from(n) - expected).powi(2) / expected;
                    cells += 1.0;
                } else {
                    rare += expected;
                    rare_seen += n;
                }
            }
            if rare > 20.0 {
                chi += (f64::from(rare_seen) - rare).powi(2) / rare;
            }
            // Mean and deviation of chi-square with n degrees are n and sqrt(2 n).
            let high = cells + 4.0 * (2.0_f64 * cells).sqrt() + 5.0;
            assert!(chi < high, "θ {theta}: chi-square {chi} of {cells} cells");
        }
    }

    #[test]
    fn zipf_reaches_far_in_a_huge_region() {
        let count = 1 << 40;
        let zipf = Zipf::new(count, 0.5);
        let mut random = random();
        let draws = 100_000;
        // With θ = 1/2 the share of the first quarter of the ranks is a half.
        let near = (0..draws)
            .filter(|_| zipf.draw(&mut random) < count / 4)
            .count();
        assert!((49_200..50_800).contains(&near), "{near}");
        let one = Zipf::new(1, 1.2);
        assert!((0..100).all(|_| one.draw(&mut random) == 0));
    }

    #[test]
    fn pareto_keeps_its_promise_at_every_scale() {
        for (h, draws) in [(0.2, 200_000), (0.4, 200_000), (0.05, 200_000)] {
            let count = 1_u64 << 40;
            let pareto = Pareto::new(count, h);
            let mut random = random();
            let ranks: Vec<u64> = (0..draws).map(|_| pareto.draw(&mut random)).collect();
            for depth in 1..4 {
                let border = (count as f64 * f64::powi(h, depth)) as u64;
                let share =
                    ranks.iter().filter(|&&rank| rank < border).count() as f64 / f64::from(draws);
                let theory = (1.0 - h).powi(depth);
                assert!((share - theory).abs() < 0.006, "h {h}: {share}, {theory}");
            }
        }
    }

    #[test]
    fn normal_has_mean_deviation_and_tails() {
        let mut normal = Normal::default();
        let mut random = random();
        let draws = 400_000;
        let all: Vec<f64> = (0..draws).map(|_| normal.draw(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / f64::from(draws);
        let square = all.iter().map(|x| x * x).sum::<f64>() / f64::from(draws);
        let beyond_two = all.iter().filter(|x| x.abs() > 2.0).count() as f64 / f64::from(draws);
        assert!(mean.abs() < 0.008, "{mean}");
        assert!((square - 1.0).abs() < 0.012, "{square}");
        assert!((beyond_two - 0.0455).abs() < 0.0017, "{beyond_two}");
    }
}
