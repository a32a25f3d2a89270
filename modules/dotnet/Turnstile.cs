// Turnstile for tests in .NET, in a container or, where no Docker is, as a process. A file to copy, with AdminApi.cs; it
// needs the package Testcontainers (4.x). UNTRIED: it was written beside those in Go and Java, and never compiled, as there was no dotnet.
//
// Which it is, says the variable TURNSTILE_RUN: container (the default), or process, which needs the turnstile command.
// TURNSTILE_IMAGE names the image.
using System.Diagnostics;
using System.Text.Json;
using DotNet.Testcontainers.Builders;
using DotNet.Testcontainers.Containers;

public sealed class Turnstile : IAsyncDisposable
{
    private readonly string token = Guid.NewGuid().ToString("N");
    private IContainer? container;
    private Process? process;

    public string Run { get; } = Environment.GetEnvironmentVariable("TURNSTILE_RUN") ?? "container";

    /// <summary>What a client's bootstrap.servers takes.</summary>
    public string Bootstrap { get; private set; } = "";

    /// <summary>Calls of the admin API, once it is started; a change is in force when its call completes.</summary>
    public AdminApi Api { get; private set; } = null!;

    /// <summary>Completes when every process of the cluster accepts connections; options are those of `turnstile up`.</summary>
    public static async Task<Turnstile> StartAsync(params string[] options)
    {
        var cluster = new Turnstile();
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
        Api = new AdminApi($"http://{container.Hostname}:{container.GetMappedPublicPort(9644)}", token, "tests in .NET");
        // The port is known only now: from here on clients are told of it.
        await Api.PutAdvertisedAsync(new AddressesChange(Addresses: Bootstrap));
    }

    private async Task StartProcessAsync(string[] options)
    {
        string[] up = ["up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0", .. options];
        var start = new ProcessStartInfo("turnstile", up) { RedirectStandardInput = true, RedirectStandardOutput = true };
        start.Environment["TURNSTILE_ADMIN_TOKEN"] = token;
        process = Process.Start(start)!;
        var told = JsonDocument.Parse(await process.StandardOutput.ReadLineAsync() ?? "{}").RootElement;
        if (told.TryGetProperty("error", out var error)) throw new InvalidOperationException(error.GetString());
        Api = new AdminApi(told.GetProperty("admin").GetString()!, token, "tests in .NET");
        Bootstrap = told.GetProperty("listeners")[0].GetProperty("address").GetString()!;
    }

    /// <summary>Changes a setting; every process of the cluster enforces it when this completes.</summary>
    public Task SetAsync(string name, object value) =>
        Api.PutConfigAsync(new SettingsChange(Upsert: new Dictionary<string, object?> { [name] = value }));

    /// <summary>Sets a quota of a client id, likewise.</summary>
    public Task QuotaAsync(string clientId, string name, double value) =>
        Api.PutQuotasAsync(new QuotasChange(
        [
            new QuotaChange(
                Entity: new Dictionary<string, string?> { ["client-id"] = clientId },
                Set: new Dictionary<string, double> { [name] = value }),
        ]));

    /// <summary>As it was when it started: no record, no group, no limit that a test has set, no connection.</summary>
    public Task ResetAsync() => Api.ResetAsync();

    /// <summary>Connections refused since the reset, by the limit that refused them.</summary>
    public async Task<Dictionary<string, long>> RefusalsAsync()
    {
        var found = new Dictionary<string, long>();
        foreach (var row in (await Api.GetRefusalsAsync("ip")).Refusals)
            foreach (var (reason, count) in row.Reasons!)
                found[reason] = found.GetValueOrDefault(reason) + count;
        return found;
    }

    public async ValueTask DisposeAsync()
    {
        if (container is not null) await container.DisposeAsync();
        if (process is not null)
        {
            process.StandardInput.Close(); // with which it ends, also if this process is killed
            await process.WaitForExitAsync();
        }
        Api?.Dispose();
    }
}
