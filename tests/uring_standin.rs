//! The stand-in process: codes, signals and a child that never ends. A test without harness, since a
//! process with threads must not fork. It runs itself once per scenario.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs
)]

#[path = "shared/skipped.rs"]
mod skipped;
#[path = "lab/support.rs"]
mod support;

use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::{Batch, Device, Queue, QueueSpec};
use lanemark::request::{Io, Op, Slot};
use lanemark::sys::standin;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SCENARIO: &str = "LANEMARK_TEST_STANDIN";

fn main() {
    match std::env::var(SCENARIO) {
        Ok(scenario) => {
            let code = standin::run(|| work(&scenario));
            std::process::exit(code.map_or_else(standin::Died::code, i32::from))
        }
        Err(_) => all(),
    }
}

/// What the child does; its result is the code.
fn work(scenario: &str) -> u8 {
    match scenario {
        "code" => {
            println!("the record");
            7
        }
        "panic" => panic!("on purpose"),
        "killed" => {
            kill("KILL", std::process::id());
            loop {
                std::thread::park();
            }
        }
        "signals" => {
            let count = Arc::new(AtomicUsize::new(0));
            let seen = Arc::clone(&count);
            let mut signals = signal_hook::iterator::Signals::new([2, 15]).unwrap();
            lanemark::sys::standin::release_signals();
            std::thread::spawn(move || {
                for _ in signals.forever() {
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
            println!("ready {}", std::process::id());
            std::thread::sleep(Duration::from_millis(800));
            count.load(Ordering::Relaxed) as u8
        }
        path => stuck(std::path::Path::new(path)),
    }
}

/// Puts more reads in flight than the device has tags for: the rest wait in workers of this process.
fn stuck(path: &std::path::Path) -> u8 {
    let device = UringDevice::open(path, UringOptions::default()).unwrap();
    let depth = device.facts().device_depth.unwrap() + 64;
    let batch = Batch {
        submit: depth,
        complete_min: 1,
        complete_max: depth,
    };
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: depth,
        slot_bytes: 4096,
        batch,
        writes: false,
    };
    let mut queue = device.open_queue(spec).unwrap();
    for slot in 0..depth {
        let io = Io {
            lba: u64::from(slot) * 64,
            blocks: 1,
            op: Op::Read,
        };
        queue.submit(Slot(slot), io).unwrap();
    }
    queue.flush().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let closed = queue.close(Duration::from_millis(100));
    println!("abandoned {} of {depth}", closed.abandoned_count);
    u8::from(closed.abandoned_count == depth)
}

fn start(scenario: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(SCENARIO, scenario)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill(signal: &str, pid: u32) {
    let arguments = [format!("-{signal}"), pid.to_string()];
    Command::new("kill").args(arguments).status().unwrap();
}

/// Exit code and output.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap().code(), text)
}

/// Tests that passed or were skipped, as libtest counts them.
static PASSED: AtomicUsize = AtomicUsize::new(0);

fn check(name: &str, fine: bool) {
    println!("test {name} ... {}", if fine { "ok" } else { "FAILED" });
    assert!(fine, "{name}");
    PASSED.fetch_add(1, Ordering::Relaxed);
}

fn all() {
    let (code, text) = end(start("code"));
    check(
        "code_and_output_are_the_childs",
        (code, text.trim()) == (Some(7), "the record"),
    );
    check("a_panic_is_101", end(start("panic")).0 == Some(101));
    check("a_killed_child_is_137", end(start("killed")).0 == Some(137));

    let mut child = start("signals");
    let mut first = [0u8; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    kill("INT", child.id());
    std::thread::sleep(Duration::from_millis(200));
    kill("TERM", child.id());
    check("each_signal_is_passed_on_once", end(child).0 == Some(2));

    // The parent is killed: the child gets SIGTERM, and its output ends.
    let mut child = start("signals");
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    let begun = Instant::now();
    kill("KILL", child.id());
    end(child);
    check(
        "a_killed_parent_takes_the_child_along",
        begun.elapsed() < Duration::from_secs(5),
    );

    a_stuck_child();
    println!(
        "test result: ok. {} passed; 0 failed",
        PASSED.load(Ordering::Relaxed)
    );
}

fn a_stuck_child() {
    let Some(_lab) = support::lab() else {
        PASSED.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let Some(stuck) = support::Stuck::new() else {
        PASSED.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let begun = Instant::now();
    let (code, text) = end(start(stuck.outer.path.to_str().unwrap()));
    let in_time = begun.elapsed() < Duration::from_secs(5);
    println!("{text}");
    check("a_stuck_child_is_left_behind", code == Some(1) && in_time);
    // The device answers at last, and the child can end: only then can the devices be taken down.
    drop(stuck.throttle);
    std::thread::sleep(Duration::from_secs(1));
}
