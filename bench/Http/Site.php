<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Options;

/** A site that a contestant serves, on a port of the loopback interface. */
final readonly class Site
{
    public const HOST = '127.0.0.1';

    /** Number of sockets that may wait to be accepted. */
    public const BACKLOG = 1024;

    /** Options that {@see of()} reads. */
    public const OPTIONS = ['port' => '', 'deadline' => '', 'certificate' => '', 'key' => ''];

    /**
     * @param int         $deadline    seconds for the head of a request, for contestants with such a deadline
     * @param string|null $certificate path; enables TLS
     * @param string|null $key         path
     */
    public function __construct(
        public Work $work,
        public int $port,
        public int $deadline,
        public ?string $certificate = null,
        public ?string $key = null,
    ) {}

    public static function of(Work $work, Options $options): self
    {
        $path = static fn(string $name): ?string => $options->has($name) ? $options->text($name) : null;

        return new self($work, $options->int('port'), $options->int('deadline'), $path('certificate'), $path('key'));
    }

    /** Returns a port that is free at the moment. */
    public static function freePort(): int
    {
        $socket = stream_socket_server('tcp://' . self::HOST . ':0');
        \assert($socket !== false);

        return (int) substr((string) strrchr((string) stream_socket_get_name($socket, false), ':'), 1);
    }

    /** @return list<string> arguments that {@see of()} reads */
    public function arguments(): array
    {
        return [
            "--port={$this->port}",
            "--deadline={$this->deadline}",
            "--certificate={$this->certificate}",
            "--key={$this->key}",
        ];
    }

    public function address(): string
    {
        return self::HOST . ":{$this->port}";
    }

    public function isTls(): bool
    {
        return $this->certificate !== null;
    }

    public function url(): string
    {
        return ($this->isTls() ? 'https' : 'http') . "://{$this->address()}/";
    }
}
