<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** What nginx and PHP-FPM are to serve: one page for all requests. */
final readonly class FpmPool
{
    /**
     * @param string                $address     host:port
     * @param string                $page        the path of a PHP file
     * @param int                   $workers     processes of PHP, as many all the time
     * @param string                $nginx       processes of nginx: a number, or auto
     * @param int                   $deadline    seconds for the head of a request
     * @param array<string, string> $environment of the workers
     * @param list<string>          $options     of PHP
     * @param string|null           $certificate path; with one, TLS is spoken
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
