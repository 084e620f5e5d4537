<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

/** One measurement as its contestants run it. */
final readonly class Work
{
    /**
     * @param string $file   the large body; received copies are beside it
     * @param int    $bytes  size of the large body
     * @param int    $count  requests, or open streams
     * @param int    $fibers requests at the same time
     * @param string $undici folder in which npm has installed undici; '' without one
     */
    public function __construct(
        public Measurement $measurement,
        public string $file,
        public int $bytes,
        public int $count,
        public int $fibers,
        public string $undici,
    ) {}

    /** @return list<string> arguments of http-client-contestant.php and undici.cjs, after the name of the contestant */
    public function arguments(TestServer $server): array
    {
        return [
            $this->measurement->value,
            implode(',', $server->urls($this->measurement)),
            (string) $this->count,
            (string) $this->fibers,
            $this->file,
            (string) $this->bytes,
        ];
    }
}
