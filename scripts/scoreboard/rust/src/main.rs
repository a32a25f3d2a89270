//! rskafka: a producer of numbered records and a reader of their partition (it has no groups), with its default settings.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;
use tokio::signal::unix::{signal, SignalKind};
use tokio::time::sleep;

async fn partition(name: &str) -> PartitionClient {
    let bootstrap = std::env::var("TURNSTILE_BOOTSTRAP").expect("TURNSTILE_BOOTSTRAP names the cluster");
    let client = ClientBuilder::new(vec![bootstrap]).client_id(name).build().await.expect("a client");
    client.partition_client("orders", 0, UnknownTopicHandling::Retry).await.expect("the topic orders")
}

async fn consume() {
    let reader = partition("consumer").await;
    let mut offset = 0;
    loop {
        if let Ok((records, _)) = reader.fetch_records(offset, 1..1_000_000, 500).await {
            offset = records.last().map_or(offset, |last| last.offset + 1);
        }
    }
}

async fn produce() {
    let writer = partition("producer").await;
    let pid = std::process::id();
    for number in 1u64.. {
        let value = Some(format!("{pid}:{number}").into_bytes());
        let record = Record { key: None, value, headers: BTreeMap::new(), timestamp: Utc::now() };
        let _ = writer.produce(vec![record], Compression::NoCompression).await;
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::main]
async fn main() {
    let mut terminated = signal(SignalKind::terminate()).expect("a handler of SIGTERM");
    tokio::select! {
        _ = produce() => {}
        _ = consume() => {}
        _ = terminated.recv() => {}
    }
}
