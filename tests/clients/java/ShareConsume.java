import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group until its stdin ends: bootstrap, client id, group, topic, and how many of its first records it
 * releases. One line for each record: "given" or "accepted", partition, offset, delivery count; the last line is the longest
 * throttle in ms that it was told.
 */
public final class ShareConsume {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("client.id", args[1]);
        properties.put("group.id", args[2]);
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("max.poll.records", "50");
        int release = Integer.parseInt(args[4]);
        Thread ended = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException ignored) { }
        });
        ended.setDaemon(true);
        ended.start();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args[3]));
            while (ended.isAlive()) {
                List<String> accepted = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    String row = record.partition() + " " + record.offset() + " " + record.deliveryCount().get();
                    System.out.println("given " + row);
                    AcknowledgeType type = release-- > 0 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
                    consumer.acknowledge(record, type);
                    if (type == AcknowledgeType.ACCEPT) {
                        accepted.add("accepted " + row);
                    }
                }
                // A partition whose answer was lost may be left out of what is returned: nothing is known of it.
                Set<Integer> committed = new HashSet<>();
                consumer.commitSync(Duration.ofSeconds(30)).forEach((partition, failure) -> {
                    if (failure.isEmpty()) {
                        committed.add(partition.partition());
                    }
                });
                accepted.stream().filter(row -> committed.contains(Integer.valueOf(row.split(" ")[1]))).forEach(System.out::println);
                System.out.flush();
            }
            double most = consumer.metrics().entrySet().stream()
                .filter(each -> each.getKey().name().contains("throttle-time-max"))
                .mapToDouble(each -> (double) each.getValue().metricValue()).filter(each -> !Double.isNaN(each)).max().orElse(0);
            System.out.println("throttled " + Math.round(most));
        }
    }
}
