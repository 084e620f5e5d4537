<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Assert;

/**
 * A page in a headless Chromium, controlled over its pipe: https://chromedevtools.github.io/devtools-protocol/.
 * Messages are JSON and end with a NUL.
 */
final class Chromium
{
    private const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

    /** Maximum seconds for an answer, even on a slow machine. */
    private const PATIENCE = 60;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private string $bytes = '';
    private int $id = 0;
    private string $session = '';

    /** @var list<string> what the page has complained of */
    public array $complaints = [];

    public static function program(): ?string
    {
        foreach (self::PROGRAMS as $program) {
            if (is_executable($program)) {
                return $program;
            }
        }

        return null;
    }

    /** @param string $directory exclusive folder for all files that Chromium writes */
    public function __construct(string $program, string $directory)
    {
        $command = [
            $program,
            '--headless=new',
            '--remote-debugging-pipe',
            "--user-data-dir={$directory}",
            '--no-sandbox',
            '--disable-gpu',
            '--disable-dev-shm-usage',
            '--no-first-run',
            '--disable-background-networking',
            '--disable-component-update',
            '--disable-sync',
            '--disable-breakpad',
            '--hide-scrollbars',
            'about:blank',
        ];
        $process = proc_open($command, [
            [
                'file',
                '/dev/null',
                'r',
            ], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w'], ['pipe', 'r'], ['pipe', 'w'],
        ], $this->pipes, null, [
            'HOME' => $directory,
            'TMPDIR' => $directory,
            'XDG_CONFIG_HOME' => $directory,
            'XDG_CACHE_HOME' => $directory,
        ] + getenv());
        Assert::assertIsResource($process);
        $this->process = $process;
        /** @var list<array{type: string, targetId: string}> $targets */
        $targets = $this->call('Target.getTargets')['targetInfos'];
        $page = array_values(array_filter($targets, static fn(array $target): bool => $target['type'] === 'page'))[0];
        $session = $this->call(
            'Target.attachToTarget',
            ['targetId' => $page['targetId'], 'flatten' => true],
        )['sessionId'];
        Assert::assertIsString($session);
        $this->session = $session;
        foreach (['Runtime', 'Log', 'Page'] as $domain) {
            $this->call("{$domain}.enable");
        }
    }

    public function open(string $url): void
    {
        $this->call('Page.navigate', ['url' => $url]);
    }

    /** @return mixed the value of an expression of JavaScript */
    public function evaluate(string $expression): mixed
    {
        /** @var array{result: array{value?: mixed}, exceptionDetails?: array{text: string}} $answer */
        $answer = $this->call(
            'Runtime.evaluate',
            ['expression' => $expression, 'returnByValue' => true, 'awaitPromise' => true],
        );
        Assert::assertArrayNotHasKey('exceptionDetails', $answer, $expression);

        return $answer['result']['value'] ?? null;
    }

    /** @return mixed the first value of the expression that is not falsy */
    public function await(string $expression, float $seconds = 30.0): mixed
    {
        $milliseconds = (int) ($seconds * 1000);
        $value = $this->evaluate(<<<JS
            new Promise(resolve => {
                const end = performance.now() + {$milliseconds};
                const look = () => {
                    let value = null;
                    try { value = {$expression}; } catch {}
                    value || performance.now() > end ? resolve(value) : setTimeout(look, 20);
                };
                look();
            })
            JS);
        $seen = \is_string($page = $this->evaluate('document.body.innerText')) ? $page : '';
        Assert::assertTrue((bool) $value, "Not so within {$seconds} s: {$expression}\nOn the page:\n{$seen}");

        return $value;
    }

    /**
     * @param array<string, mixed> $parameters
     *
     * @return array<string, mixed>
     */
    public function call(string $method, array $parameters = []): array
    {
        $id = ++$this->id;
        $message = [
            'id' => $id,
            'method' => $method,
            'params' => (object) $parameters,
        ] + ($this->session === '' ? [] : ['sessionId' => $this->session]);
        fwrite($this->pipes[3], json_encode($message, \JSON_THROW_ON_ERROR) . "\0");
        do {
            $answer = $this->next();
            $this->listen($answer);
        } while (($answer['id'] ?? null) !== $id);
        Assert::assertArrayNotHasKey('error', $answer, $method);
        /** @var array<string, mixed> $result */
        $result = $answer['result'] ?? [];

        return $result;
    }

    /** Ends Chromium, and waits for its end. */
    public function close(): void
    {
        if (\is_resource($this->process)) {
            @fwrite($this->pipes[3], "{\"id\": 0, \"method\": \"Browser.close\"}\0");
            while (!feof($this->pipes[4])) {
                if ($this->read() === false) {
                    proc_terminate($this->process, \SIGKILL);
                    break;
                }
            }
            array_map(fclose(...), $this->pipes);
            proc_close($this->process);
        }
    }

    /** @param array<mixed> $event */
    private function listen(array $event): void
    {
        $method = $event['method'] ?? '';
        if (
            $method === 'Runtime.exceptionThrown'
            || $method === 'Log.entryAdded'
            || $method === 'Runtime.consoleAPICalled'
        ) {
            $this->complaints[] = json_encode($event['params'], \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES);
        }
    }

    /** @return array<mixed> */
    private function next(): array
    {
        while (!str_contains($this->bytes, "\0")) {
            Assert::assertTrue($this->read(), 'Chromium does not answer');
        }
        [$message, $this->bytes] = explode("\0", $this->bytes, 2);

        return (array) json_decode($message, true, flags: \JSON_THROW_ON_ERROR);
    }

    /** @return bool whether bytes arrived in time */
    private function read(): bool
    {
        [$readable, $none] = [[$this->pipes[4]], null];
        if ((int) stream_select($readable, $none, $none, self::PATIENCE) === 0) {
            return false;
        }
        $bytes = (string) fread($this->pipes[4], 1 << 16);
        $this->bytes .= $bytes;

        return $bytes !== '';
    }
}
