import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one JVM, since each JVM costs a second to start.
 *
 * A request is one line of base64 words: main class, standard input, arguments. The answer is one line: exit code,
 * base64 standard output, base64 standard error. Ends with its standard input.
 */
public final class Tools {
    private static final class Exited extends RuntimeException {
        Exited() {
            super("exit", null, false, false);
        }
    }

    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static volatile Integer exitCode;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Exit.setExitProcedure((code, message) -> exit(code, message));
        Exit.setHaltProcedure((code, message) -> exit(code, message));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[1])));
            String[] args = new String[words.length - 2];
            for (int i = 0; i < args.length; i++) {
                args[i] = new String(Base64.getDecoder().decode(words[i + 2]), StandardCharsets.UTF_8);
            }
            int code = run(new String(Base64.getDecoder().decode(words[0]), StandardCharsets.UTF_8), args);
            runHooks();
            Base64.Encoder encoder = Base64.getEncoder();
            answers.println(code + " " + encoder.encodeToString(out.toByteArray()) + " "
                + encoder.encodeToString(err.toByteArray()));
            answers.flush();
        }
    }

    private static void exit(int code, String message) {
        if (exitCode == null) {
            exitCode = code;
            if (message != null) {
                System.err.println(message);
            }
            // Some tools catch what is thrown here, print it and exit once more: only the first exit counts.
            System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        }
        throw new Exited();
    }

    /** What the end of the JVM would do: the console producer sends its last records in such a hook. */
    private static void runHooks() {
        for (Runnable hook : HOOKS) {
            hook.run();
        }
        HOOKS.clear();
    }

    private static int run(String mainClass, String[] args) {
        exitCode = null;
        try {
            Method main = Class.forName(mainClass).getMethod("main", String[].class);
            main.invoke(null, (Object) args);
            return exitCode == null ? 0 : exitCode;
        } catch (InvocationTargetException e) {
            if (exitCode != null) {
                return exitCode;
            }
            e.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            return 1;
        }
    }
}
