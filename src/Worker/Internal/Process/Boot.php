<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\Protocol;

/** How a process becomes a worker: it finds its pool, loads what it is told to load, says that it is ready, works. */
final class Boot
{
    private readonly Worker $worker;

    /**
     * @param array{socket: string, token: string, key: string, id: int, files: list<string>, initialize: ?string, mark: int, timed: bool} $settings
     */
    private function __construct(private readonly array $settings)
    {
        $wire = Wire::connect($settings['socket']) ?? exit(1); // the pool is gone
        $mark = self::mark($settings['mark']);
        $wire->send(Protocol::HELLO, $settings['id'], $settings['token'], pack('VC', getmypid(), $mark === null ? 0 : 1));
        $this->worker = new Worker($wire, $settings['key'], $mark, $settings['timed']);
        $this->worker->attach();
    }

    public static function fromInput(): self
    {
        // Not to where the results of the pool's own process are printed.
        if (!\in_array(strtolower((string) \ini_get('display_errors')), ['', '0', 'off', 'no', 'false', 'stderr'], true)) {
            ini_set('display_errors', 'stderr');
        }
        /** @var array{socket: string, token: string, key: string, id: int, files: list<string>, initialize: ?string, mark: int, timed: bool} $settings */
        $settings = unserialize((string) stream_get_contents(\STDIN), ['allowed_classes' => false]);

        return new self($settings);
    }

    /** @return list<string> to be required where globals are global */
    public function files(): array
    {
        return $this->settings['files'];
    }

    public function fail(\Throwable $failure): never
    {
        $this->worker->failed($failure);
        exit(255);
    }

    public function work(): void
    {
        try {
            $this->worker->initialize($this->settings['initialize']);
        } catch (\Throwable $failure) {
            $this->fail($failure);
        }
        $this->worker->work();
    }

    /** Made here and not by the pool, which removes its name as soon as it has opened it: so no kill leaves it behind. */
    private static function mark(int $key): ?\Shmop
    {
        if ($key === 0 || !\function_exists('shmop_open')) {
            return null;
        }
        $mark = @shmop_open($key, 'n', 0o600, Protocol::MARK_SIZE);

        return $mark === false ? null : $mark;
    }
}
