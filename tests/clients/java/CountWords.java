import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams: counts the words of a topic, exactly once, by a repartition topic and a changelog; until its input ends. */
class CountWords {
    public static void main(String[] args) throws Exception {
        var properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("application.id", args[1]);
        properties.put("group.protocol", args[2]);
        properties.put("state.dir", args[3]);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("commit.interval.ms", "200");
        properties.put("num.stream.threads", "2");
        properties.put("replication.factor", "1");
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());
        var builder = new StreamsBuilder();
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("counts");
        try (var streams = new KafkaStreams(builder.build(), properties)) {
            streams.setStateListener((now, before) -> System.out.println("state " + now));
            streams.start();
            while (System.in.read() >= 0) {
            }
            streams.close(Duration.ofSeconds(10));
        }
    }
}
