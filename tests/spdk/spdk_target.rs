//! An `nvmf_tgt` of the tests' own, driven over its JSON-RPC socket. Tests that need one take [`target`], which
//! also lets only one of them run at a time, in this process and over processes.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const RESERVED_MIB: u64 = 1536;
const NEEDED_MIB: u64 = 768;
const TARGET_MIB: u64 = 512;
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A running target; killed on drop.
pub struct Target {
    child: Child,
    dir: tempfile::TempDir,
    port: u16,
    _process: File,
    _thread: MutexGuard<'static, ()>,
}

/// The folder of SPDK's programs.
pub fn programs() -> PathBuf {
    let root = std::env::var("SPDK_DIR").unwrap_or_else(|_| "/opt/lanemark/spdk".to_owned());
    let bins = [
        Path::new(&root).join("bin"),
        Path::new(&root).join("build/bin"),
    ];
    bins.iter()
        .find(|bin| bin.join("nvmf_tgt").exists())
        .unwrap_or(&bins[0])
        .clone()
}

/// Why these tests cannot run here.
fn missing() -> Option<String> {
    if std::env::var_os("LANEMARK_LAB").is_none_or(|value| value != "1") {
        return Some("SPDK tests run with LANEMARK_LAB=1".to_owned());
    }
    if let Some(why) = lanemark::spdk::absent() {
        return Some(format!("built without SPDK: {why}"));
    }
    let program = programs().join("nvmf_tgt");
    if !program.exists() {
        return Some(format!("no {}", program.display()));
    }
    reserve_hugepages().err()
}

/// Makes sure that there are free hugepages for target and initiator.
fn reserve_hugepages() -> Result<(), String> {
    let sysfs = lanemark::sysfs::Sysfs::host();
    let free = || -> u64 {
        let pages = lanemark::spdk::preflight::hugepages(&sysfs);
        pages
            .iter()
            .map(|pages| (pages.free_count * pages.page_bytes) >> 20)
            .sum()
    };
    if free() >= NEEDED_MIB {
        return Ok(());
    }
    let _ = std::fs::write(
        sysfs.proc("sys/vm/nr_hugepages"),
        (RESERVED_MIB / 2).to_string(),
    );
    match free() {
        enough if enough >= NEEDED_MIB => Ok(()),
        some => Err(format!(
            "{some} MiB of free hugepages, {NEEDED_MIB} needed and could not be reserved"
        )),
    }
}

/// A fresh target, or nothing (with the reason on stderr) where it cannot run.
pub fn target() -> Option<Target> {
    target_with(&[])
}

/// A fresh target with more arguments for `nvmf_tgt`.
pub fn target_with(arguments: &[&str]) -> Option<Target> {
    let thread = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = File::create(std::env::temp_dir().join("lanemark-spdk-tests.lock")).unwrap();
    process.lock().unwrap();
    if let Some(why) = missing() {
        crate::skipped::skipped(&why);
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let child = start(dir.path(), arguments);
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let target = Target {
        child,
        dir,
        port,
        _process: process,
        _thread: thread,
    };
    target.await_answer();
    Some(target)
}

/// Starts the program.
fn start(dir: &Path, arguments: &[&str]) -> Child {
    let log = File::create(dir.join("log")).unwrap();
    Command::new(programs().join("nvmf_tgt"))
        .args([
            "-m",
            "0x1",
            "-s",
            &TARGET_MIB.to_string(),
            "--disable-cpumask-locks",
            "-g",
            "--env-context",
            "--in-memory",
        ])
        .arg("-r")
        .arg(dir.join("rpc.sock"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Target {
    fn await_answer(&self) {
        let start = Instant::now();
        while self.call("spdk_get_version", json!({})).is_err() {
            assert!(
                start.elapsed() < ANSWER_LIMIT,
                "nvmf_tgt does not answer: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the target and starts another in its place, with nothing in it.
    pub fn replace(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(self.dir.path().join("vfio"));
        self.child = start(self.dir.path(), &[]);
        self.await_answer();
    }

    /// What the target printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// A call over JSON-RPC.
    pub fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let text = |error: std::io::Error| error.to_string();
        let mut socket = UnixStream::connect(self.dir.path().join("rpc.sock")).map_err(text)?;
        socket.set_read_timeout(Some(ANSWER_LIMIT)).map_err(text)?;
        let mut request = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        if params.as_object().is_some_and(|params| !params.is_empty()) {
            request["params"] = params;
        }
        socket
            .write_all(request.to_string().as_bytes())
            .map_err(text)?;
        let mut answer = Vec::new();
        let mut part = [0; 65536];
        loop {
            let got = socket.read(&mut part).map_err(text)?;
            answer.extend_from_slice(&part[..got]);
            if let Ok(value) = serde_json::from_slice::<Value>(&answer) {
                return match value.get("error") {
                    Some(error) => Err(format!("{method}: {error}")),
                    None => Ok(value["result"].clone()),
                };
            }
            if got == 0 {
                return Err(format!("{method}: the target hung up"));
            }
        }
    }

    /// A call that must succeed.
    #[track_caller]
    pub fn rpc(&self, method: &str, params: Value) -> Value {
        self.call(method, params)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.log()))
    }

    /// A null bdev of this many blocks of 4 KiB.
    pub fn null(&self, name: &str, blocks: u64) {
        self.rpc(
            "bdev_null_create",
            json!({ "name": name, "num_blocks": blocks, "block_size": 4096 }),
        );
    }

    /// A memory bdev of this many blocks.
    pub fn malloc(&self, name: &str, blocks: u64, block_bytes: u32) {
        self.rpc(
            "bdev_malloc_create",
            json!({ "name": name, "num_blocks": blocks, "block_size": block_bytes }),
        );
    }

    /// A bdev that takes this long for everything.
    pub fn delay(&self, name: &str, base: &str, latency_us: u64) {
        self.rpc(
            "bdev_delay_create",
            json!({ "name": name, "base_bdev_name": base, "avg_read_latency": latency_us, "p99_read_latency": latency_us,
                "avg_write_latency": latency_us, "p99_write_latency": latency_us }),
        );
    }

    /// A subsystem with these (namespace, bdev).
    pub fn subsystem(&self, nqn: &str, namespaces: &[(u32, &str)]) {
        self.rpc(
            "nvmf_create_subsystem",
            json!({ "nqn": nqn, "allow_any_host": true, "serial_number": "LANEMARK01", "model_number": "lanemark test", "max_namespaces": 16 }),
        );
        for (nsid, bdev) in namespaces {
            self.rpc(
                "nvmf_subsystem_add_ns",
                json!({ "nqn": nqn, "namespace": { "nsid": nsid, "bdev_name": bdev } }),
            );
        }
    }

    /// Listens for `nqn` on loopback; the transport ID.
    pub fn tcp(&self, nqn: &str) -> String {
        self.tcp_with(nqn, json!({}))
    }

    /// The same with options of the transport.
    pub fn tcp_with(&self, nqn: &str, options: Value) -> String {
        let port = self.port.to_string();
        let mut transport = json!({ "trtype": "TCP" });
        transport
            .as_object_mut()
            .unwrap()
            .extend(options.as_object().unwrap().clone());
        let _ = self.call("nvmf_create_transport", transport);
        self.rpc("nvmf_subsystem_add_listener", self.tcp_listener(nqn));
        format!("trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:{port} subnqn:{nqn}")
    }

    /// The listener of [`Target::vfio_user`], as JSON-RPC wants it.
    pub fn vfio_user_listener(&self, nqn: &str) -> Value {
        let traddr = self.dir.path().join("vfio");
        json!({ "nqn": nqn, "listen_address": { "trtype": "VFIOUSER", "traddr": traddr, "trsvcid": "0" } })
    }

    /// The listener of [`Target::tcp`], as JSON-RPC wants it.
    pub fn tcp_listener(&self, nqn: &str) -> Value {
        json!({ "nqn": nqn, "listen_address": { "trtype": "TCP", "adrfam": "IPv4", "traddr": "127.0.0.1", "trsvcid": self.port.to_string() } })
    }

    /// Listens for `nqn` on a folder, as a controller in shared memory; the transport ID.
    pub fn vfio_user(&self, nqn: &str) -> String {
        self.vfio_user_with(nqn, json!({}))
    }

    /// The same with options of the transport.
    pub fn vfio_user_with(&self, nqn: &str, options: Value) -> String {
        let folder = self.dir.path().join("vfio");
        std::fs::create_dir_all(&folder).unwrap();
        let mut transport = json!({ "trtype": "VFIOUSER" });
        transport
            .as_object_mut()
            .unwrap()
            .extend(options.as_object().unwrap().clone());
        let _ = self.call("nvmf_create_transport", transport);
        let traddr = folder.to_str().unwrap();
        self.rpc("nvmf_subsystem_add_listener", self.vfio_user_listener(nqn));
        format!("trtype:VFIOUSER traddr:{traddr} subnqn:{nqn}")
    }

    /// Sends a signal to the target.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// A folder for the test's files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run of the program that has ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Run {
    /// Its standard output, which must be JSON and nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A run of the program that goes on.
pub struct Running(Child);

impl Running {
    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .args([&format!("-{name}"), &self.0.id().to_string()])
            .status()
            .unwrap();
        assert!(done.success());
    }
}

/// No run of a test takes longer.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// `lanemark run --device DEVICE --format json ARGUMENTS`, to its end.
pub fn run(device: &str, arguments: &[&str]) -> Run {
    run_during(device, arguments, RUN_LIMIT, |_| ())
}

/// The same; `fault` is called once if it still runs `at` after its first word of progress: then it has begun to
/// measure, or to fill.
pub fn run_during(
    device: &str,
    arguments: &[&str],
    at: Duration,
    fault: impl FnOnce(&Running),
) -> Run {
    let start = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_lanemark"))
        .args(["run", "--device", device, "--format", "json"])
        .args(["--progress", "json"])
        .args(arguments)
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let begun = Arc::new(OnceLock::new());
    let stdout = follow(running.0.stdout.take().unwrap(), Arc::default());
    let stderr = follow(running.0.stderr.take().unwrap(), Arc::clone(&begun));
    let mut fault = Some(fault);
    let code = loop {
        if let Some(status) = running.0.try_wait().unwrap() {
            break status.code();
        }
        if begun
            .get()
            .is_some_and(|begun: &Instant| begun.elapsed() >= at)
            && let Some(fault) = fault.take()
        {
            fault(&running);
        }
        if start.elapsed() > RUN_LIMIT {
            running.0.kill().unwrap();
            running.0.wait().unwrap();
            panic!(
                "the run did not end within {RUN_LIMIT:?}: {} {}",
                stdout.join().unwrap(),
                stderr.join().unwrap()
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let took = start.elapsed();
    Run {
        code,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
        took,
    }
}

/// Reads a pipe to its end, and notes when the first line of progress comes.
fn follow(pipe: impl Read + Send + 'static, begun: Arc<OnceLock<Instant>>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if line.contains("\"event\":\"progress\"") {
                let _ = begun.set(Instant::now());
            }
            text += &line;
            text.push('\n');
        }
        text
    })
}

/// Free hugepages of all nodes and sizes.
pub fn free_hugepages() -> u64 {
    lanemark::spdk::preflight::hugepages(&lanemark::sysfs::Sysfs::host())
        .iter()
        .map(|pages| pages.free_count)
        .sum()
}
