//! The same types for a program built without SPDK: nothing can be opened, and the reason is given.

use super::spec::{AttachOptions, Completions, EnvOptions, Namespace, Payload, QpairSpec, Refused};
use super::trid::TransportId;
use super::{SpdkError, absent};
use crate::proto::nvme::{Command, IdentifyController, SmartLog};
use crate::sysfs::Sysfs;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// No value of it exists.
#[derive(Debug, Clone, Copy)]
enum Never {}

fn error() -> SpdkError {
    SpdkError::Absent {
        why: absent().unwrap_or_default(),
    }
}

/// Never starts.
#[derive(Debug)]
pub struct Env(Never);

impl Env {
    /// Says why there is none.
    ///
    /// # Errors
    /// [`SpdkError::Absent`].
    pub fn start(_sysfs: &Sysfs, _options: &EnvOptions) -> Result<&'static Self, SpdkError> {
        Err(error())
    }
}

/// Never attached.
#[derive(Debug)]
pub struct Controller(Never);

#[allow(missing_docs, clippy::missing_errors_doc, clippy::must_use_candidate)] // as in controller.rs
impl Controller {
    pub fn attach(
        env: &'static Env,
        _id: &TransportId,
        _options: AttachOptions,
    ) -> Result<Arc<Self>, SpdkError> {
        match env.0 {}
    }
    pub fn id(&self) -> &TransportId {
        match self.0 {}
    }
    pub fn name(&self) -> String {
        match self.0 {}
    }
    pub fn identify(&self) -> &IdentifyController {
        match self.0 {}
    }
    pub fn max_transfer_bytes(&self) -> u32 {
        match self.0 {}
    }
    pub fn numa_node(&self) -> i32 {
        match self.0 {}
    }
    pub fn io_queues_count(&self) -> u32 {
        match self.0 {}
    }
    pub fn queue_entries(&self) -> u32 {
        match self.0 {}
    }
    pub fn is_gone(&self) -> bool {
        match self.0 {}
    }
    pub fn namespaces(&self) -> Result<Vec<Namespace>, SpdkError> {
        match self.0 {}
    }
    pub fn zeroes_shift(&self) -> Option<u8> {
        match self.0 {}
    }
    pub fn smart(&self) -> Result<SmartLog, SpdkError> {
        match self.0 {}
    }
    pub fn write_cache(&self) -> Result<Option<bool>, SpdkError> {
        match self.0 {}
    }
}

/// Never opened.
#[derive(Debug)]
pub struct Qpair(Never);

/// Never lent.
pub struct Lane<'a>(Never, PhantomData<&'a ()>);

#[allow(missing_docs, clippy::missing_errors_doc, clippy::must_use_candidate)] // as in qpair.rs
impl Lane<'_> {
    pub fn submit(
        &mut self,
        _slot: u32,
        _command: &Command,
        _payload: Payload,
    ) -> Result<(), Refused> {
        match self.0 {}
    }
    pub fn in_flight(&self) -> u32 {
        match self.0 {}
    }
    pub fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        match self.0 {}
    }
    pub fn extra(&mut self, _slot: u32) -> &mut [u8] {
        match self.0 {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc, clippy::must_use_candidate)] // as in qpair.rs
impl Qpair {
    pub fn open(controller: &Arc<Controller>, _spec: &QpairSpec) -> Result<Self, SpdkError> {
        match controller.0 {}
    }
    pub fn lane(&mut self) -> Lane<'_> {
        match self.0 {}
    }
    pub fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        match self.0 {}
    }
    pub fn poll<C: Completions>(&mut self, _receiver: &mut C, _most: u32) -> Result<usize, i32> {
        match self.0 {}
    }
    pub fn namespace_is_active(&self) -> bool {
        match self.0 {}
    }
    pub fn close(self, _limit: Duration) -> u32 {
        match self.0 {}
    }
}
