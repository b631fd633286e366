//! The end of a reactor: queues are closed, what is left in flight is listed, the books are given out.

use super::outcome::{Abandoned, ReactorOutcome, StreamOutcome};
use super::poll::Reactor;
use crate::backend::Queue;
use crate::clock::{Clock, Tick};
use std::time::Duration;

/// How long a queue may take to give up what was abandoned.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

impl<Q: Queue, C: Clock> Reactor<Q, C> {
    /// Closes the queues and gives the books out.
    #[must_use]
    pub fn finish(mut self) -> ReactorOutcome {
        if Q::SLEEPS {
            self.note_cpu_time();
        }
        let now = self.pass_end;
        let abandoned = self.abandoned(now);
        for lane in self.lanes.drain(..) {
            lane.queue.close(CLOSE_LIMIT);
        }
        let mut account = self.account;
        let stamp_mode = account.stamp_mode();
        let clock = account.clock;
        let window_end = account.window_end;
        let streams = self
            .streams
            .into_iter()
            .zip(account.failed_counts)
            .map(|(mut stream, failed_count)| {
                let (mut backlog_count, mut oldest) = (0, window_end);
                stream.backlog(window_end, &clock, |op, due| {
                    backlog_count += 1;
                    oldest = oldest.min(due);
                    if let Some(scheduled) = &mut account.interval.scheduled[op as usize] {
                        scheduled.record_censored(clock.to_ns(window_end.since(due)));
                    }
                });
                StreamOutcome {
                    index: stream.setup.index,
                    tally: stream.tally,
                    failed_count,
                    ended_ns: stream.ended.map(|ended| clock.to_ns(ended.0)),
                    backlog_count,
                    backlog_oldest_ns: clock.to_ns(window_end.since(oldest)),
                    generator: stream.generator,
                }
            })
            .collect();
        ReactorOutcome {
            index: self.index,
            cpu: self.cpu,
            window_start_ns: clock.to_ns(account.window_start.0),
            window_end_ns: clock.to_ns(window_end.0),
            cause: account.control.cause(),
            gone: self.gone,
            stuck: self.stuck,
            submitted_count: account.submitted_count,
            completed_count: account.completed_count,
            failed_count: account.failed_count,
            window_failed_count: account.window_failed_count,
            window_failed_sum_ns: account.window_failed_sum_ns,
            abandoned,
            stamp_mode,
            errors: account.errors,
            slowest: account.slowest,
            gaps: account.gaps,
            stamp_bound: account.stamp_bound,
            busy_ns: if Q::SLEEPS {
                self.cpu_ns_used
            } else {
                clock.to_ns(self.busy_ticks)
            },
            worker_ns: Some(0),
            busy_is_cpu_time: Q::SLEEPS,
            polls_count: self.polls_count,
            in_flight_area_ns: (self.in_flight_area * u128::from(clock.to_ns(1 << 32))) >> 32,
            drain_max_ns: account.drain_max_ns,
            failed_max_ns: account.failed_max_ns,
            last_interval: account.interval,
            streams,
        }
    }

    /// What is in flight, oldest first.
    fn abandoned(&self, now: Tick) -> Vec<Abandoned> {
        let clock = &self.account.clock;
        let mut list: Vec<Abandoned> = self
            .lanes
            .iter()
            .flat_map(|lane| lane.slots.busy())
            .map(|entry| Abandoned {
                io: entry.io,
                age_ns: clock.to_ns(now.since(entry.submitted)),
                scheduled_age_ns: (self.streams[entry.stream as usize].is_open_loop())
                    .then(|| clock.to_ns(now.since(entry.scheduled))),
                stream: self.streams[entry.stream as usize].setup.index,
            })
            .collect();
        list.sort_by_key(|abandoned| std::cmp::Reverse(abandoned.age_ns));
        list
    }
}
