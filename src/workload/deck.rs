//! Exact shares in random order.
//!
//! Drawing each kind independently is right only on average: after n draws a share of a half is off by
//! about 50 %/√n. A `Deck` deals [`DECK_CARDS`] cards that hold each kind in its exact share, in a random
//! order, and then makes the next deck. What does not divide (12.345 % of 100 cards) is carried over to
//! the next decks, so that no error builds up.
//!
//! Bound: after any number of draws the count of a kind among k kinds is off by less than
//! `DECK_CARDS/4 + k`. Why: let `carry` be the cards a kind is still owed. Every deck adds the kinds'
//! fractions, which sum to the number of spare cards, and gives each spare card to the largest carry.
//! Before each such gift the carries sum to a positive number, so the largest is positive and stays
//! above -1 afterwards; after all gifts they sum to 0 again, so none exceeds k - 1. Within a deck that
//! holds c cards of the kind, m draws bring c·m/DECK_CARDS ± DECK_CARDS/4.
//!
//! The order within a deck is random, so a device cannot foresee it; a run of one kind is at most two
//! decks' worth of that kind longer than its share allows, where independent draws have no limit.

use super::random::{Purpose, Random};

/// Cards in a deck. 100, so that whole percents need no carry and are exact after every 100 draws.
const DECK_CARDS: usize = 100;

/// Bits behind the point of the carries.
const FRACTION_BITS: u32 = 40;

/// The most by which the count of one kind among `kinds_count` can differ from its share, after any
/// number of draws: `DECK_CARDS/4 + kinds`, in draws. Divide by the number of draws for the share.
#[must_use]
pub fn share_error_bound_count(kinds_count: usize) -> f64 {
    (DECK_CARDS / 4 + kinds_count) as f64
}

/// One kind: the cards it has in every deck, and what it is owed beyond them.
#[derive(Debug, Clone)]
struct Kind {
    /// Cards in every deck.
    whole: u16,
    /// Owed by every deck beyond those, in 2^-40 cards.
    fraction: i64,
    /// Owed up to now, in 2^-40 cards; negative where it had more.
    carry: i64,
}

/// Chooses among kinds, numbered from 0, in exact shares.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    /// One kind has all of it.
    Only(usize),
    /// Several kinds.
    Mixed(Box<Deck>),
}

impl Choice {
    /// A choice among kinds in these shares, of any sum.
    pub(super) fn new(shares: &[f64], seed: u64, purpose: Purpose) -> Self {
        let mut with_share = (0..shares.len()).filter(|&kind| shares[kind] > 0.0);
        match (with_share.next(), with_share.next()) {
            (Some(_), Some(_)) => Self::Mixed(Box::new(Deck::new(shares, seed, purpose))),
            (only, _) => Self::Only(only.unwrap_or(0)),
        }
    }

    /// The next kind.
    #[inline]
    pub(super) fn draw(&mut self) -> usize {
        match self {
            Self::Only(kind) => *kind,
            Self::Mixed(deck) => deck.draw(),
        }
    }
}

/// Deals the indices of kinds in exact shares. Nothing is allocated after `new`.
#[derive(Debug, Clone)]
pub(super) struct Deck {
    kinds: Vec<Kind>,
    /// Cards of every deck that are not in `whole`.
    spare: u16,
    cards: [u16; DECK_CARDS],
    left: usize,
    random: Random,
}

impl Deck {
    /// A deck of kinds in these shares, of any sum above 0.
    fn new(shares: &[f64], seed: u64, purpose: Purpose) -> Self {
        let mut random = Random::new(seed, purpose);
        let owed = owed_per_deck(shares);
        let mut kinds: Vec<Kind> = owed
            .iter()
            .map(|owed| Kind {
                whole: (owed >> FRACTION_BITS) as u16,
                fraction: owed & ((1 << FRACTION_BITS) - 1),
                carry: 0,
            })
            .collect();
        spread_start(&mut kinds, &mut random);
        let dealt: u16 = kinds.iter().map(|kind| kind.whole).sum();
        Self {
            kinds,
            spare: DECK_CARDS as u16 - dealt,
            cards: [0; DECK_CARDS],
            left: 0,
            random,
        }
    }

    #[inline]
    fn draw(&mut self) -> usize {
        if self.left == 0 {
            self.refill();
        }
        let place = self.random.below(self.left as u64) as usize;
        self.left -= 1;
        let card = self.cards[place];
        self.cards[place] = self.cards[self.left];
        usize::from(card)
    }

    #[cold]
    fn refill(&mut self) {
        for (index, kind) in self.kinds.iter_mut().enumerate() {
            kind.carry += kind.fraction;
            let end = self.left + usize::from(kind.whole);
            self.cards[self.left..end].fill(index as u16);
            self.left = end;
        }
        for _ in 0..self.spare {
            let mut most = 0;
            for index in 1..self.kinds.len() {
                if self.kinds[index].carry > self.kinds[most].carry {
                    most = index;
                }
            }
            self.kinds[most].carry -= 1 << FRACTION_BITS;
            self.cards[self.left] = most as u16;
            self.left += 1;
        }
    }
}

/// Cards per deck of each kind in 2^-40 cards; sums to `DECK_CARDS` exactly.
fn owed_per_deck(shares: &[f64]) -> Vec<i64> {
    let all = (DECK_CARDS as i64) << FRACTION_BITS;
    let sum: f64 = shares.iter().sum();
    let mut owed: Vec<i64> = shares
        .iter()
        .map(|share| (share / sum * all as f64).round() as i64)
        .collect();
    // What rounding left over, some 2^-40 cards, goes to the largest share.
    let rest = all - owed.iter().sum::<i64>();
    if let Some(largest) = owed.iter_mut().max() {
        *largest += rest;
    }
    owed
}

/// Starts the carries at random, summing to 0 and each within 1: otherwise every stream of a step
/// would issue its one I/O in a thousand in the same deck.
fn spread_start(kinds: &mut [Kind], random: &mut Random) {
    let mut previous: Option<usize> = None;
    for index in 0..kinds.len() {
        if kinds[index].fraction == 0 {
            continue;
        }
        if let Some(previous) = previous {
            let shift = random.below(1 << FRACTION_BITS) as i64 - (1 << (FRACTION_BITS - 1));
            kinds[previous].carry += shift;
            kinds[index].carry -= shift;
        }
        previous = Some(index);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Largest error of any kind over the first `draws` draws, in draws.
    fn worst_error(shares: &[f64], seed: u64, draws: u64) -> f64 {
        let sum: f64 = shares.iter().sum();
        let mut deck = Deck::new(shares, seed, Purpose::Ops);
        let mut counts = vec![0_u64; shares.len()];
        let mut worst = 0.0_f64;
        for drawn in 1..=draws {
            counts[deck.draw()] += 1;
            for (count, share) in counts.iter().zip(shares) {
                worst = worst.max((*count as f64 - drawn as f64 * share / sum).abs());
            }
        }
        worst
    }

    #[test]
    fn whole_percents_are_exact_after_every_hundred() {
        for percent in [1.0, 33.0, 70.0, 99.0] {
            let mut deck = Deck::new(&[percent, 100.0 - percent], 9, Purpose::Ops);
            let mut first = 0;
            for drawn in 1..=100_000_u64 {
                first += u64::from(deck.draw() == 0);
                if drawn % 100 == 0 {
                    assert_eq!(first, drawn / 100 * percent as u64);
                }
            }
        }
    }

    #[test]
    fn shares_that_do_not_divide_are_carried_over() {
        let thirds = [100.0 / 3.0, 100.0 / 3.0, 100.0 / 3.0];
        assert!(worst_error(&thirds, 1, 1_000_000) < share_error_bound_count(3));
        let rare = [0.01, 99.99];
        let mut deck = Deck::new(&rare, 2, Purpose::Ops);
        let rare_count = (0..1_000_000).filter(|_| deck.draw() == 0).count();
        assert!((99..=101).contains(&rare_count), "{rare_count}");
    }

    #[test]
    fn a_share_of_zero_never_comes() {
        let mut deck = Deck::new(&[0.0, 12.3, 87.7, 0.0], 4, Purpose::Ops);
        assert!((0..100_000).all(|_| [1, 2].contains(&deck.draw())));
    }

    #[test]
    fn one_kind_needs_no_deck() {
        for (shares, only) in [(&[100.0][..], 0), (&[0.0, 100.0], 1), (&[0.0, 0.0], 0)] {
            assert!(matches!(
                Choice::new(shares, 1, Purpose::Ops),
                Choice::Only(kind) if kind == only
            ));
        }
    }

    #[test]
    fn rare_kinds_of_different_streams_come_at_different_times() {
        let first = |seed| {
            let mut deck = Deck::new(&[0.1, 99.9], seed, Purpose::Ops);
            (0..2_000).position(|_| deck.draw() == 0).unwrap() / DECK_CARDS
        };
        let decks: std::collections::HashSet<_> = (0..50).map(first).collect();
        assert!(decks.len() > 5, "{decks:?}");
    }

    /// Neighbours in the sequence are as good as independent: no alternation that a device could learn.
    #[test]
    fn order_is_random() {
        let mut deck = Deck::new(&[50.0, 50.0], 8, Purpose::Ops);
        let kinds: Vec<usize> = (0..100_000).map(|_| deck.draw()).collect();
        let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // Without replacement 50/99 of the neighbours differ: 50,505; independent draws give 50,000.
        assert!((49_500..51_500).contains(&changes), "{changes}");
        assert_ne!(kinds[..100], kinds[100..200], "decks are not the same");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_kind_leaves_the_bound(
            shares in prop::collection::vec(0.001_f64..100.0, 2..24),
            seed: u64,
        ) {
            let worst = worst_error(&shares, seed, 20_000);
            prop_assert!(worst < share_error_bound_count(shares.len()), "{}", worst);
        }
    }
}
