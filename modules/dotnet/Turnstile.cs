// Turnstile for tests in .NET, in a container or, where no Docker is, as a process. A file to copy; it needs the package
// Testcontainers (4.x). UNTRIED: it was written beside those in Go and Java, and never compiled, as there was no dotnet.
//
// Which it is, says the variable TURNSTILE_RUN: container (the default), or process, which needs the turnstile command.
// TURNSTILE_IMAGE names the image.
using System.Diagnostics;
using System.Net.Http.Headers;
using System.Net.Http.Json;
using System.Text.Json;
using DotNet.Testcontainers.Builders;
using DotNet.Testcontainers.Containers;

public sealed class Turnstile : IAsyncDisposable
{
    private readonly string token = Guid.NewGuid().ToString("N");
    private readonly HttpClient http = new();
    private IContainer? container;
    private Process? process;

    public string Run { get; } = Environment.GetEnvironmentVariable("TURNSTILE_RUN") ?? "container";

    /// <summary>What a client's bootstrap.servers takes.</summary>
    public string Bootstrap { get; private set; } = "";

    private string Admin { get; set; } = "";

    /// <summary>Completes when every process of the cluster accepts connections; options are those of `turnstile up`.</summary>
    public static async Task<Turnstile> StartAsync(params string[] options)
    {
        var cluster = new Turnstile();
        cluster.http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", cluster.token);
        cluster.http.DefaultRequestHeaders.Add("x-turnstile-who", "tests in .NET");
        try
        {
            if (cluster.Run == "container") await cluster.StartContainerAsync(options);
            else if (cluster.Run == "process") await cluster.StartProcessAsync(options);
            else throw new ArgumentException($"TURNSTILE_RUN cannot be {cluster.Run}: container or process");
            return cluster;
        }
        catch
        {
            await cluster.DisposeAsync();
            throw;
        }
    }

    private async Task StartContainerAsync(string[] options)
    {
        container = new ContainerBuilder()
            .WithImage(Environment.GetEnvironmentVariable("TURNSTILE_IMAGE") ?? "localhost/turnstile:latest")
            .WithCommand(["up", .. options])
            .WithEnvironment("TURNSTILE_ADMIN_TOKEN", token)
            .WithPortBinding(9092, true)
            .WithPortBinding(9644, true)
            .WithWaitStrategy(Wait.ForUnixContainer().UntilMessageIsLogged("Turnstile is ready\\."))
            .Build();
        await container.StartAsync();
        Bootstrap = $"{container.Hostname}:{container.GetMappedPublicPort(9092)}";
        Admin = $"http://{container.Hostname}:{container.GetMappedPublicPort(9644)}";
        // The port is known only now: from here on clients are told of it.
        await AskAsync(HttpMethod.Put, "/v1/advertise", new { addresses = Bootstrap });
    }

    private async Task StartProcessAsync(string[] options)
    {
        string[] up = ["up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0", .. options];
        var start = new ProcessStartInfo("turnstile", up) { RedirectStandardInput = true, RedirectStandardOutput = true };
        start.Environment["TURNSTILE_ADMIN_TOKEN"] = token;
        process = Process.Start(start)!;
        var told = JsonDocument.Parse(await process.StandardOutput.ReadLineAsync() ?? "{}").RootElement;
        if (told.TryGetProperty("error", out var error)) throw new InvalidOperationException(error.GetString());
        Admin = told.GetProperty("admin").GetString()!;
        Bootstrap = told.GetProperty("listeners")[0].GetProperty("address").GetString()!;
    }

    /// <summary>Changes a setting; every process of the cluster enforces it when this completes.</summary>
    public Task SetAsync(string name, object value) =>
        AskAsync(HttpMethod.Put, "/v1/cluster_config",
            new { upsert = new Dictionary<string, object> { [name] = value }, remove = Array.Empty<string>() });

    /// <summary>Sets a quota of a client id, likewise.</summary>
    public Task QuotaAsync(string clientId, string name, double value) =>
        AskAsync(HttpMethod.Put, "/v1/quotas", new
        {
            alter = new[]
            {
                new
                {
                    entity = new Dictionary<string, string> { ["client-id"] = clientId },
                    set = new Dictionary<string, double> { [name] = value },
                    remove = Array.Empty<string>(),
                },
            },
        });

    /// <summary>As it was when it started: no record, no group, no limit that a test has set, no connection.</summary>
    public Task ResetAsync() => AskAsync(HttpMethod.Post, "/v1/reset", null);

    /// <summary>Connections refused since the reset, by the limit that refused them.</summary>
    public async Task<Dictionary<string, int>> RefusalsAsync()
    {
        var found = new Dictionary<string, int>();
        var told = await AskAsync(HttpMethod.Get, "/v1/refusals?by=ip", null);
        foreach (var row in told.GetProperty("refusals").EnumerateArray())
            foreach (var reason in row.GetProperty("reasons").EnumerateObject())
                found[reason.Name] = found.GetValueOrDefault(reason.Name) + reason.Value.GetInt32();
        return found;
    }

    /// <summary>The JSON of an answer of the admin API; of a change, once it is in force.</summary>
    public async Task<JsonElement> AskAsync(HttpMethod method, string path, object? body)
    {
        using var request = new HttpRequestMessage(method, Admin + path);
        if (body is not null) request.Content = JsonContent.Create(body);
        using var response = await http.SendAsync(request);
        var told = await response.Content.ReadAsStringAsync();
        if (!response.IsSuccessStatusCode) throw new InvalidOperationException(told);
        return JsonDocument.Parse(told).RootElement;
    }

    public async ValueTask DisposeAsync()
    {
        if (container is not null) await container.DisposeAsync();
        if (process is not null)
        {
            process.StandardInput.Close(); // with which it ends, also if this process is killed
            await process.WaitForExitAsync();
        }
        http.Dispose();
    }
}
