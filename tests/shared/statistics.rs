//! Whether counts are as even as chance makes them.

/// Chi-square of counts that should all be alike.
pub fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts
        .iter()
        .map(|&count| (count as f64 - expected).powi(2) / expected)
        .sum()
}

/// What chi-square of `cells` equal cells exceeds once in some 30,000 times (mean + 4 deviations).
pub fn chi_square_limit(cells: usize) -> f64 {
    let degrees = (cells - 1) as f64;
    degrees + 4.0 * (2.0 * degrees).sqrt() + 4.0
}
