import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;

/**
 * Creates topics one after the other: bootstrap, client id, retryOnQuotaViolation, partitions of each, names. One line for
 * each: its name, "created" or "throttled", and how many milliseconds it took or is to wait.
 */
public final class CreateTopics {
    public static void main(String[] args) throws Exception {
        CreateTopicsOptions options = new CreateTopicsOptions().retryOnQuotaViolation(Boolean.parseBoolean(args[2]));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", args[1]))) {
            for (String name : List.of(args).subList(4, args.length)) {
                NewTopic topic = new NewTopic(name, Optional.of(Integer.parseInt(args[3])), Optional.empty());
                long began = System.nanoTime();
                try {
                    admin.createTopics(List.of(topic), options).all().get();
                    System.out.println(name + " created " + (System.nanoTime() - began) / 1_000_000);
                } catch (ExecutionException failed) {
                    if (!(failed.getCause() instanceof ThrottlingQuotaExceededException throttled)) {
                        throw failed;
                    }
                    System.out.println(name + " throttled " + throttled.throttleTimeMs());
                }
            }
        }
    }
}
