//! What writes carry.

use super::random::{Purpose, Random, mix64, purpose_seed};
use super::spec::{DataPattern, OpMix, StreamSpec};
use crate::request::{Io, Op};

/// A piece that is filled with one key: a logical block, or 4 KiB of a larger one.
const PIECE_BYTES_MAX: usize = 4096;
const WORD_BYTES: usize = 8;
const WORDS_MAX: usize = PIECE_BYTES_MAX / WORD_BYTES;

/// Fills the buffers of one stream's writes.
///
/// - `Random`: every logical block (and every 4 KiB of larger ones) is filled anew for every write: its
///   first 8 bytes are a key, little-endian; each following 8 bytes are the key XOR a word of the
///   stream's pool of random words, read from a place that depends on the key. The key is a bijection of
///   a count, so no two blocks of a stream are alike, nor are their parts: there is nothing for
///   deduplication to find, within a block or across, nor for compression. A stamp that changes only a
///   few bytes would not do: a device that compresses several blocks together would see the repeats.
/// - `Compressible`: the same, and then the last share of each piece is zero, in whole words; what is rounded off
///   one piece the next makes up for, so that the share comes out. The key always stays.
/// - `Zero`, `Fixed`: written once by [`Filler::initial`]; again before each write only where the stream
///   also reads, because a read leaves the device's data in the buffer.
///
/// Streams have pools and keys of their own, from their seeds.
#[derive(Debug, Clone)]
pub struct Filler {
    fill: Fill,
    logical_block_bytes: usize,
    /// Whether reads land in the same buffers.
    reads_too: bool,
}

#[derive(Debug, Clone)]
enum Fill {
    Constant([u8; 4]),
    Random {
        /// Two pieces long, so that a piece can start anywhere in the first half.
        pool: Box<[u64]>,
        next_key: u64,
        zero_ratio: f64,
        /// Zero words that rounding has kept back so far, below one.
        owed_words: f64,
    },
}

impl Filler {
    /// For the writes of a stream on a device with this logical block.
    #[must_use]
    pub fn new(spec: &StreamSpec, logical_block_bytes: u32) -> Self {
        let random = |zero_pct: f64| {
            let mut random = Random::new(spec.seed, Purpose::Data);
            Fill::Random {
                pool: (0..2 * WORDS_MAX).map(|_| random.bits()).collect(),
                next_key: purpose_seed(spec.seed, Purpose::Data),
                zero_ratio: (zero_pct / 100.0).clamp(0.0, 1.0),
                owed_words: 0.0,
            }
        };
        Self {
            fill: match spec.data {
                DataPattern::Random => random(0.0),
                DataPattern::Compressible(zero_pct) => random(zero_pct),
                DataPattern::Zero => Fill::Constant([0; 4]),
                DataPattern::Fixed(bytes) => Fill::Constant(bytes),
            },
            logical_block_bytes: logical_block_bytes as usize,
            reads_too: matches!(spec.ops, OpMix::ReadWrite { .. }),
        }
    }

    /// Fills a slot's whole buffer, once, before the first I/O.
    pub fn initial(&mut self, buffer: &mut [u8]) {
        self.fill(buffer);
    }

    /// Prepares the buffer of a write before it is submitted; does nothing for other operations.
    ///
    /// # Panics
    /// When the buffer is shorter than the I/O.
    #[inline]
    pub fn stamp(&mut self, buffer: &mut [u8], io: &Io) {
        let changes = self.reads_too || matches!(self.fill, Fill::Random { .. });
        if io.op == Op::Write && changes {
            let bytes = io.blocks as usize * self.logical_block_bytes;
            self.fill(&mut buffer[..bytes]);
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) {
        match &mut self.fill {
            Fill::Constant([0, 0, 0, 0]) => buffer.fill(0),
            Fill::Constant(bytes) => {
                for chunk in buffer.chunks_mut(bytes.len()) {
                    chunk.copy_from_slice(&bytes[..chunk.len()]);
                }
            }
            Fill::Random {
                pool,
                next_key,
                zero_ratio,
                owed_words,
            } => {
                for block in buffer.chunks_mut(self.logical_block_bytes) {
                    for piece in block.chunks_mut(PIECE_BYTES_MAX) {
                        let key = mix64(*next_key);
                        *next_key = next_key.wrapping_add(1);
                        let words = piece.len() / WORD_BYTES;
                        let wanted = (words as f64).mul_add(*zero_ratio, *owed_words);
                        let zero_words = (wanted as usize).min(words.saturating_sub(1));
                        *owed_words = (wanted - zero_words as f64).min(1.0);
                        fill_piece(piece, key, pool, zero_words);
                    }
                }
            }
        }
    }
}

/// One pass over the piece, in words, that the compiler turns into vector instructions.
fn fill_piece(piece: &mut [u8], key: u64, pool: &[u64], zero_words: usize) {
    let (random, zero) = piece.split_at_mut(piece.len() - zero_words * WORD_BYTES);
    let from = key as usize % WORDS_MAX;
    let (whole, tail) = random.as_chunks_mut::<WORD_BYTES>();
    for (out, word) in whole.iter_mut().zip(&pool[from..]) {
        *out = (word ^ key).to_le_bytes();
    }
    if let Some(first) = whole.first_mut() {
        *first = key.to_le_bytes();
    }
    let tail_bytes = pool[from].to_le_bytes();
    tail.copy_from_slice(&tail_bytes[..tail.len()]);
    zero.fill(0);
}
