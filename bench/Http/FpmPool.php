<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Configuration of nginx and PHP-FPM: one page handles all requests. */
final readonly class FpmPool
{
    /**
     * @param string                $address     host:port
     * @param string                $page        the path of a PHP file
     * @param int                   $workers     constant number of PHP processes
     * @param string                $nginx       number of nginx's processes, or auto
     * @param int                   $deadline    seconds for the head of a request
     * @param array<string, string> $environment environment of the workers
     * @param list<string>          $options     options of PHP
     * @param string|null           $certificate path; enables TLS
     * @param string|null           $key         path
     */
    public function __construct(
        public string $address,
        public string $page,
        public int $workers,
        public string $nginx = 'auto',
        public int $deadline = 60,
        public array $environment = [],
        public array $options = [],
        public ?string $certificate = null,
        public ?string $key = null,
    ) {}

    public static function of(Site $site): self
    {
        return new self(
            $site->address(),
            __DIR__ . "/page/{$site->work->value}.php",
            Fpm::WORKERS,
            deadline: $site->deadline,
            certificate: $site->certificate,
            key: $site->key,
        );
    }
}
