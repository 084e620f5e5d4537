<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\Thrown;

/**
 * How a process becomes a worker, or the host of workers: it finds its pool, loads what it is told to load, works.
 */
final class Boot
{
    private static ?self $thread = null;

    /** Pools around this process, and workers beside it in all of them: a pool that a task makes is the smaller for it. */
    private static int $depth = 0;
    private static int $siblings = 1;

    private ?Wire $wire = null;
    private ?Worker $worker = null;

    /** @param array<string, mixed> $settings {@see \Spindle\Worker\Internal\Settings} */
    private function __construct(private array $settings) {}

    public static function fromInput(): self
    {
        self::showErrorsApart();
        /** @var array<string, mixed> $settings */
        $settings = unserialize((string) stream_get_contents(\STDIN), ['allowed_classes' => false]);
        $boot = new self($settings);
        if (isset($settings['host'])) {
            require_once \dirname(__DIR__, 3) . '/Internal/Launcher/Protocol.php';
            foreach (['Files', 'ProcessTree', 'Integers', 'LibcFunctions', 'Libc'] as $class) {
                require_once \dirname(__DIR__, 3) . "/Internal/Launcher/Process/{$class}.php";
            }
            require_once __DIR__ . '/ForkHost.php';
            require_once __DIR__ . '/ThreadHost.php';
            $boot->wire = $boot->connect();
            $boot->wire->send(Protocol::HOST, 0, \is_string($settings['token']) ? $settings['token'] : '');
        } else {
            $boot->attach(false);
        }

        return $boot;
    }

    /** All that a thread does as a worker. */
    public static function inThread(string $settings): void
    {
        self::showErrorsApart();
        /** @var array<string, mixed> $settings */
        $settings = unserialize($settings, ['allowed_classes' => false]);
        $boot = new self($settings);
        $boot->attach(true);
        self::$thread = $boot;
        try {
            foreach ($boot->files() as $file) {
                self::load($file);
            }
        } catch (\Throwable $failure) {
            $boot->fail($failure);
        }
        $boot->work();
    }

    /**
     * What a thread does last, however it has ended.
     *
     * @param int $descriptor of a socket, which says so
     */
    public static function leaveThread(int $descriptor): void
    {
        self::$thread?->worker?->lastWords();
        self::$thread = null;
        $end = fopen("php://fd/{$descriptor}", 'w');
        if ($end !== false) {
            fwrite($end, '.');
            fclose($end);
        }
    }

    public static function depth(): int
    {
        return self::$depth;
    }

    public static function siblings(): int
    {
        return self::$siblings;
    }

    /** @return list<string> to be required where globals are global */
    public function files(): array
    {
        if (($this->settings['host'] ?? null) === 'thread') {
            return []; // each thread loads them for itself
        }
        /** @var list<string> $files */
        $files = $this->settings['files'];

        return $files;
    }

    public function fail(\Throwable $failure): never
    {
        if ($this->worker !== null) {
            $this->worker->failed($failure);
        } else {
            $this->wire?->send(Protocol::NOT_READY, 0, serialize(Thrown::of($failure)));
        }
        exit(255);
    }

    /** Not to where the results of the pool's own process are printed. */
    private static function showErrorsApart(): void
    {
        if (!\in_array(strtolower((string) \ini_get('display_errors')), ['', '0', 'off', 'no', 'false', 'stderr'], true)) {
            ini_set('display_errors', 'stderr');
        }
    }

    /** Its variables become globals, as they do where it is required outside of a function. */
    private static function load(string $file): void
    {
        (static function () use ($file): void {
            require_once $file;
            unset($file);
            foreach (get_defined_vars() as $name => $value) {
                $GLOBALS[$name] = $value;
            }
        })();
    }

    /** Returns when the pool has no more for it, or is gone. */
    public function work(): void
    {
        try {
            if ($this->wire !== null && !$this->host($this->wire)) {
                return;
            }
            /** @var string|null $code */
            $code = $this->settings['initialize'];
            $this->worker?->initialize($code);
        } catch (\Throwable $failure) {
            $this->fail($failure);
        }
        $this->worker?->work();
    }

    /** @return bool whether this process is a worker now, as a fork of the one that called */
    private function host(Wire $wire): bool
    {
        if ($this->settings['host'] === 'thread') {
            class_exists('parallel\\Runtime') ? (new ThreadHost($wire))->run() : throw new \RuntimeException('ext-parallel is missing in the command-line PHP');
        }
        if (!\function_exists('pcntl_fork') || !\function_exists('posix_kill')) {
            throw new \RuntimeException('ext-pcntl or ext-posix is missing in the command-line PHP');
        }
        $settings = (new ForkHost($wire))->run();
        if ($settings === null) {
            return false;
        }
        $this->settings = $settings;
        $this->attach(false);

        return true;
    }

    private function attach(bool $isThread): void
    {
        /** @var array{key: string, timed: bool, depth: int, siblings: int, mark: int, token: string, id: int} $settings */
        $settings = $this->settings;
        self::$depth = $settings['depth'];
        self::$siblings = $settings['siblings'];
        $wire = $this->connect();
        $this->worker = new Worker($wire, $settings['key'], $settings['mark'], $settings['timed'], $isThread);
        $this->worker->attach();
        $wire->send(Protocol::HELLO, $settings['id'], $settings['token'], pack('VC', getmypid(), $this->worker->hasMark() ? 1 : 0));
    }

    private function connect(): Wire
    {
        /** @var array{socket: string} $settings */
        $settings = $this->settings;

        return Wire::connect($settings['socket']) ?? exit(1); // the pool is gone
    }
}
