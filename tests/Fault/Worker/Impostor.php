<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\Internal\Process\Boot;
use Spindle\Worker\Internal\Protocol;

/** Has a socket that a worker, or a host of workers, takes for that of the pool which has started it. */
final class Impostor
{
    /** Seconds until one that neither ends nor obeys is given up. */
    private const PATIENCE = 10.0;

    /** @var resource */
    private readonly mixed $socket;

    /** @var array<string, mixed> as {@see \Spindle\Worker\Internal\Settings} has them */
    private readonly array $settings;

    /** All that those have told who came. */
    private string $told = '';

    /**
     * @param 'fork'|'thread'|null     $kind   of the workers that the process is the host of; null for a worker
     * @param \Closure(string): string $answer to a greeting, what is said before the orders
     * @param string                   $file   that whoever obeys leaves behind
     */
    public function __construct(private readonly ?string $kind, string $token, private readonly \Closure $answer, private readonly string $file)
    {
        $name = 'spindle-' . bin2hex(random_bytes(16));
        $socket = stream_socket_server("unix://\0{$name}");
        \assert($socket !== false);
        $this->socket = $socket;
        $this->settings = [
            'socket' => $name,
            'token' => $token,
            'key' => random_bytes(32),
            'id' => 1,
            'mark' => 0,
            'files' => [\dirname(__DIR__, 3) . '/vendor/autoload.php'],
            'initialize' => null,
            'depth' => 1,
            'siblings' => 1,
            'timed' => false,
            'maxResult' => 1 << 20,
            'maxGrowth' => null,
            'restoresState' => false,
        ];
    }

    /**
     * Returns when the process has ended, or was obedient.
     *
     * @return array{bool, string, string} whether it ended while it could have gone on; what it has printed, and told
     */
    public function deceive(): array
    {
        $main = \dirname((string) (new \ReflectionClass(Boot::class))->getFileName()) . '/main.php';
        $process = proc_open(['sh', '-c', 'exec "$@" 2>&1', 'sh', \PHP_BINARY, $main], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        \assert(\is_resource($process));
        /** @var array{resource, resource} $pipes */
        fwrite($pipes[0], serialize(($this->kind === null ? [] : ['host' => $this->kind]) + $this->settings));
        fclose($pipes[0]);
        $ended = $this->talk($pipes[1]);
        fclose($this->socket);
        $printed = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        return [$ended, $printed, $this->told];
    }

    /** @param resource $output that is at its end when the process is */
    private function talk(mixed $output): bool
    {
        $links = [];
        for ($end = microtime(true) + self::PATIENCE; microtime(true) < $end && !is_file($this->file); clearstatcache()) {
            $reads = [...$links, $output, $this->socket];
            $none = null;
            stream_select($reads, $none, $none, 0, 20_000);
            if (\in_array($output, $reads, true)) {
                return true; // what it prints, which it should not, is read later
            }
            if (\in_array($this->socket, $reads, true) && ($newcomer = stream_socket_accept($this->socket)) !== false) {
                $links[] = $newcomer;
                $greeting = (string) fread($newcomer, 4096);
                $this->told .= $greeting;
                @fwrite($newcomer, ($this->answer)($greeting) . $this->orders($greeting));
            }
            foreach ($links as $i => $link) {
                $bytes = \in_array($link, $reads, true) ? (string) fread($link, 4096) : null;
                $this->told .= $bytes;
                if ($bytes === '') {
                    unset($links[$i]);
                }
            }
        }

        return false;
    }

    /** To a worker: a task. To a host: to have a worker, which comes and gets that. */
    private function orders(string $greeting): string
    {
        if ($greeting[4] === \chr(Protocol::HOST)) {
            return Protocol::frame(Protocol::START, 1, serialize($this->settings));
        }

        return Protocol::frame(Protocol::CODE, 5, serialize(['f', 'touch']))
            . Protocol::frame(Protocol::TASKS, 1, pack('VVC', 5, 1, 0) . serialize([$this->file]));
    }
}
