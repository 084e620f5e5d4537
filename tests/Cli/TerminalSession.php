<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use Spindle\Tests\Eventually;

/** A shell line that runs in a pseudo-terminal, as the session's foreground process. */
final class TerminalSession
{
    public readonly TerminalEmulator $terminal;

    /** All bytes that were written to the terminal. */
    public string $bytes = '';

    /** @var resource */
    private mixed $process;

    /** @var array<int, resource> the terminal, open three times */
    private array $masters;

    private ?int $status = null;

    /** @param array<string, string> $environment */
    public function __construct(
        string $line,
        private readonly string $directory,
        array $environment,
        int $columns = 80,
        int $rows = 24,
    ) {
        $this->terminal = new TerminalEmulator($columns, $rows);
        $size = "stty rows {$rows} cols {$columns}";
        $process = proc_open(
            ['setsid', '-c', '-w', 'bash', '-c', Program::CLOSE_ALL . "tty > tty; {$size}; {$line}"],
            [['pty'], ['pty'], ['pty']],
            $pipes,
            $directory,
            $environment + ['TERM' => 'xterm', 'LC_ALL' => 'C.UTF-8'] + getenv(),
        );
        \assert($process !== false);
        [$this->process, $this->masters] = [$process, $pipes];
        stream_set_blocking($pipes[0], false);
    }

    public function __destruct()
    {
        if ($this->status === null) {
            $this->closeTerminal();
            proc_terminate($this->process, 9);
        }
    }

    public function type(string $keys): void
    {
        fwrite($this->masters[0], $keys);
    }

    /** Changes the size of the terminal. The text that is visible must fit, because it is not wrapped again. */
    public function resize(int $columns, int $rows): void
    {
        $this->terminal->resize($columns, $rows);
        exec("stty rows {$rows} cols {$columns} < {$this->tty()}");
    }

    /** Returns whether a write to the terminal would not block now. */
    public function acceptsOutput(): bool
    {
        if ($this->tty() === '') {
            return true; // the shell has not started
        }
        $tty = fopen($this->tty(), 'w');
        \assert($tty !== false);
        [$none, $writable] = [null, [$tty]];

        return stream_select($none, $writable, $none, 0) === 1;
    }

    /** Closes the terminal, as a window that is closed. */
    public function closeTerminal(): void
    {
        array_map(fclose(...), $this->masters);
        $this->masters = [];
    }

    /** @param string $pattern regular expression for the text of the terminal */
    public function waitFor(string $pattern, float $seconds = 20.0): void
    {
        try {
            Eventually::holdsByItself(function () use ($pattern): bool {
                $this->read();

                return preg_match($pattern, $this->terminal->text()) === 1;
            }, $pattern, $seconds);
        } catch (\Throwable $failed) {
            throw new \RuntimeException("Not found: {$pattern} in\n{$this->terminal->text()}\n", 0, $failed);
        }
    }

    /** Waits for the end of the line, and returns its exit status. */
    public function wait(float $seconds = 30.0): int
    {
        Eventually::holdsByItself(function (): bool {
            $this->read();
            $status = proc_get_status($this->process);
            if (!$status['running']) {
                $this->status ??= $status['exitcode'];
            }

            return $this->status !== null;
        }, 'the session has ended', $seconds);
        $this->read();

        return (int) $this->status;
    }

    /** Waits for the end of the line, and returns all bytes that were written to the terminal. */
    public function all(): string
    {
        $this->wait();

        return $this->bytes;
    }

    /** Returns the name of the terminal; '' before the shell has written it. */
    private function tty(): string
    {
        return trim((string) @file_get_contents("{$this->directory}/tty"));
    }

    private function read(): void
    {
        while ($this->masters !== [] && ($bytes = (string) @fread($this->masters[0], 1 << 16)) !== '') {
            $this->bytes .= $bytes;
            $this->terminal->feed($bytes);
        }
    }
}
