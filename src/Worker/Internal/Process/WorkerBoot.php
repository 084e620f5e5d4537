<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\Thrown;

/** Starts a worker in this process or thread, or a host in this process. A host starts workers as forks or threads. */
final class WorkerBoot
{
    /** Instance of this process or thread. A global variable would show the secrets to a task that prints $GLOBALS. */
    private static ?self $current = null;

    /** Number of nested pools around this process: 1 in a worker of the outermost pool. */
    private static int $depth = 0;

    /** Product of the sizes of the pools around this process. A new pool divides the number of CPUs by this product. */
    private static int $siblings = 1;

    private ?PoolLink $link = null;
    private ?Worker $worker = null;

    /** @var list<string> files to load */
    private array $files = [];

    private ?string $initialize = null;

    /** Current step in the start of this worker or host. If the step fails, the error message names the step. */
    private string $step = 'its start';

    /** @param 'fork'|'thread'|null $kind how this host runs its workers; null for a worker */
    private function __construct(private readonly ?string $kind) {}

    /** Reads the settings from standard input, and connects to the pool. */
    public static function fromInput(): void
    {
        self::sendErrorsToStderr();
        /** @var array<string, mixed> $settings {@see \Spindle\Worker\Internal\WorkerSettings} */
        $settings = ValueSerializer::unserializeData((string) stream_get_contents(\STDIN));
        /** @var 'fork'|'thread'|null $kind */
        $kind = $settings['host'] ?? null;
        self::$current = $boot = new self($kind);
        if ($kind === null) {
            $boot->attach($settings, false);

            return;
        }
        require_once \dirname(__DIR__, 3) . '/Internal/Launcher/LauncherProtocol.php';
        foreach (['Files', 'ProcessTree', 'Libc'] as $class) {
            require_once \dirname(__DIR__, 3) . "/Internal/Launcher/Process/{$class}.php";
        }
        require_once __DIR__ . '/InheritedChanges.php';
        require_once \dirname(__DIR__, 3) . '/Internal/RandomNumbers.php';
        require_once __DIR__ . '/ForkHost.php';
        require_once __DIR__ . '/ThreadHost.php';
        /** @var list<string> $files */
        $files = $settings['files'];
        $boot->files = $kind === 'thread' ? [] : $files; // each thread loads the files itself
        $boot->link = self::connect($settings);
        $secret = \is_string($settings['secret']) ? $settings['secret'] : '';
        $boot->link->greet(WorkerProtocol::HOST, 0, $secret, pack('V', getmypid()));
    }

    /** Runs a worker in this thread. Empties `$settings`: otherwise stack traces of tasks would show the secrets. */
    public static function inThread(#[\SensitiveParameter] string &$settings): void
    {
        self::sendErrorsToStderr();
        self::$current = $boot = new self(null);
        /** @var array<string, mixed> $fields */
        $fields = ValueSerializer::unserializeData($settings);
        $settings = '';
        $boot->attach($fields, true);
        unset($fields);
        try {
            while (self::hasFile()) {
                self::load(self::nextFile());
            }
        } catch (\Throwable $failure) {
            self::fail($failure);
        }
        self::work();
    }

    /** @param int $descriptor descriptor of the socket through which the thread reports its end to the host */
    public static function endThread(int $descriptor): void
    {
        self::$current?->worker?->reportExit();
        self::$current = null;
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

    /** Returns whether a file is left to load. Processes load files in main.php, whose code has the global scope. */
    public static function hasFile(): bool
    {
        return self::current()->files !== [];
    }

    public static function nextFile(): string
    {
        $boot = self::current();
        $file = (string) array_shift($boot->files);
        $boot->step = "the file {$file}";

        return $file;
    }

    /** Reports that this worker or host cannot become ready, and ends this process or thread. */
    public static function fail(\Throwable $failure): never
    {
        $boot = self::current();
        if ($boot->worker !== null) {
            $boot->worker->reportStartFailure($boot->step, $failure);
        } else {
            $boot->link?->send(WorkerProtocol::NOT_READY, 0, serialize([$boot->step, Thrown::of($failure)]));
        }
        exit(255);
    }

    /** In a worker, runs tasks until the pool stops the worker or disconnects. In a host, starts the workers. */
    public static function work(): void
    {
        $boot = self::current();
        $boot->step = 'its start';
        try {
            if ($boot->link !== null && !$boot->host($boot->link)) {
                return;
            }
            $boot->step = 'WorkerPoolOptions(initialize:)';
            $boot->worker?->initialize($boot->initialize);
        } catch (\Throwable $failure) {
            self::fail($failure);
        }
        $boot->worker?->work();
    }

    private static function current(): self
    {
        return self::$current ?? throw new \LogicException('This process is not a worker');
    }

    /** Sends PHP errors to standard error. Otherwise the errors would mix with the pool's standard output. */
    private static function sendErrorsToStderr(): void
    {
        if (!\in_array(
            strtolower((string) \ini_get('display_errors')),
            ['', '0', 'off', 'no', 'false', 'stderr'],
            true,
        )) {
            ini_set('display_errors', 'stderr');
        }
    }

    /** Loads a file, and makes its variables global, as if PHP had loaded the file in the global scope. */
    private static function load(string $file): void
    {
        $load = \Closure::bind(static function (): void {
            require_once func_get_arg(0);
            foreach (get_defined_vars() as $name => $value) {
                $GLOBALS[$name] = $value;
            }
        }, null, null);
        $load($file); // @phpstan-ignore arguments.count (a parameter would be a variable of the file)
    }

    /** @return bool true in each fork (a worker); false in the host, after the pool has closed the connection */
    private function host(PoolLink $link): bool
    {
        if ($this->kind === 'thread') {
            class_exists('parallel\\Runtime')
                ? (new ThreadHost($link))->run()
                : throw new \RuntimeException('ext-parallel is missing in the command-line PHP');
        }
        if (!\function_exists('pcntl_fork') || !\function_exists('posix_kill')) {
            throw new \RuntimeException('ext-pcntl or ext-posix is missing or disabled in the command-line PHP');
        }
        $settings = (new ForkHost($link))->run();
        if ($settings === null) {
            return false;
        }
        $this->attach($settings, false);

        return true;
    }

    /** @param array<string, mixed> $settings */
    private function attach(#[\SensitiveParameter] array $settings, bool $isThread): void
    {
        /**
         * @var array{
         *     key: string, timed: bool, maxResultBytes: int, maxMemoryGrowthBytes: int|null, restoresState: bool,
         *     depth: int, siblings: int, sharedMemoryKey: int, secret: string, id: int, socket: string,
         *     files: list<string>, initialize: string|null,
         * } $settings
         */
        self::$depth = $settings['depth'];
        self::$siblings = $settings['siblings'];
        $this->files = $this->kind === null ? $settings['files'] : []; // the host has loaded the files for its forks
        $this->initialize = $settings['initialize'];
        $link = self::connect($settings);
        $this->worker = new Worker(
            $link,
            $settings['key'],
            $settings['sharedMemoryKey'],
            $settings['timed'],
            $settings['maxResultBytes'],
            $settings['maxMemoryGrowthBytes'],
            $settings['restoresState'],
            $isThread,
        );
        $fields = pack('VC', getmypid(), (int) $this->worker->attach());
        $link->greet(WorkerProtocol::HELLO, $settings['id'], $settings['secret'], $fields);
    }

    /** @param array<string, mixed> $settings */
    private static function connect(#[\SensitiveParameter] array $settings): PoolLink
    {
        /** @var array{socket: string} $settings */
        return PoolLink::connect($settings['socket']) ?? exit(1); // the pool accepts no connections
    }
}
