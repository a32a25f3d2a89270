import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** Kafka Streams with its default settings, in a group of the protocol that is named: it reads a topic, and writes numbered records to another. */
public class Streams {
    public static void main(String[] args) {
        Properties where = new Properties();
        where.put("bootstrap.servers", System.getenv("TURNSTILE_BOOTSTRAP"));
        where.put("application.id", "streams");
        where.put("group.protocol", args[0]);
        where.put("state.dir", System.getProperty("java.io.tmpdir") + "/streams-" + ProcessHandle.current().pid());
        where.put("default.key.serde", Serdes.StringSerde.class.getName());
        where.put("default.value.serde", Serdes.StringSerde.class.getName());
        Topology topology = new Topology();
        topology.addSource("read", "read").addProcessor("number", Numbering::new, "read").addSink("written", "orders", "number");
        KafkaStreams streams = new KafkaStreams(topology, where);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.setUncaughtExceptionHandler(fault -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.start();
    }

    /** A record every 20 ms, beside those that are read. */
    static class Numbering implements Processor<String, String, String, String> {
        private long number = 0;

        @Override
        public void init(ProcessorContext<String, String> context) {
            long pid = ProcessHandle.current().pid();
            context.schedule(Duration.ofMillis(20), PunctuationType.WALL_CLOCK_TIME, now ->
                context.forward(new Record<>(null, pid + ":" + ++number, now)));
        }

        @Override
        public void process(Record<String, String> record) {}
    }
}
