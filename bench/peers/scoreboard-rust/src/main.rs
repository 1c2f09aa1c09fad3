//! kube-rs on the scoreboard.
//!
//! *Default*: the kinds with all their fields, as generated or written down in full.
//! *Tuned*: streamed lists, managedFields dropped, types that hold only the fields that
//! are read, and Pods by label on the server.

mod kinds;
mod probe;

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use kinds::{full, slim};
use probe::{Probe, Sight};

const RUNNERS: &str = "app=ambient-code-runner";

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

async fn reconcile<K: Sight>(object: Arc<K>, probe: Arc<Probe>) -> Result<Action, Never> {
    probe.note(&*object);
    Ok(Action::await_change())
}

fn on_error<K>(_: Arc<K>, _: &Never, _: Arc<Probe>) -> Action {
    Action::await_change()
}

/// A controller as the first page of the documentation has it.
async fn plain<K>(api: Api<K>, probe: Arc<Probe>)
where
    K: Kind,
{
    Controller::new(api, watcher::Config::default())
        .run(reconcile, on_error, probe)
        .for_each(|_| std::future::ready(()))
        .await
}

/// A controller on a stream that is pruned before it is stored.
fn pruned<K>(api: Api<K>) -> Controller<K>
where
    K: Kind,
{
    let (reader, writer) = reflector::store();
    let config = watcher::Config::default().streaming_lists();
    let stream = watcher(api, config)
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects();
    Controller::for_stream(stream, reader)
}

async fn run<K>(controller: Controller<K>, probe: Arc<Probe>)
where
    K: Kind,
{
    controller.run(reconcile, on_error, probe).for_each(|_| std::future::ready(())).await
}

/// What all the kinds have in common.
trait Kind:
    Sight + Resource<DynamicType = ()> + ResourceExt + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Sight
        + Resource<DynamicType = ()>
        + ResourceExt
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

async fn sessions(client: Client, probe: Arc<Probe>, tuned: bool) {
    let (_reader, writer) = reflector::store::<Pod>();
    let pods: Api<Pod> = Api::all(client.clone());
    if tuned {
        let config = watcher::Config::default().streaming_lists().labels(RUNNERS);
        let runners = watcher(pods, config)
            .default_backoff()
            .modify(|pod| pod.managed_fields_mut().clear())
            .reflect(writer)
            .touched_objects();
        let sessions = pruned::<slim::AgenticSession>(Api::all(client.clone())).owns_stream(runners);
        let settings = pruned::<slim::ProjectSettings>(Api::all(client));
        futures::join!(run(sessions, probe.clone()), run(settings, probe));
    } else {
        let runners = watcher(pods, watcher::Config::default()).default_backoff().reflect(writer).touched_objects();
        let sessions = Controller::new(Api::<full::AgenticSession>::all(client.clone()), watcher::Config::default())
            .owns_stream(runners);
        let settings = plain::<full::ProjectSettings>(Api::all(client), probe.clone());
        futures::join!(run(sessions, probe), settings);
    }
}

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tuned = std::env::var("BENCH_VARIANT").is_ok_and(|word| word == "tuned");
    let probe = Arc::new(Probe::new());
    let client = Client::try_default().await.expect("a kubeconfig");
    match std::env::var("BENCH_WORKLOAD").as_deref() {
        Ok("P") if tuned => run(pruned::<slim::Pod>(Api::all(client)), probe).await,
        Ok("P") => plain::<Pod>(Api::all(client), probe).await,
        _ => sessions(client, probe, tuned).await,
    }
}
