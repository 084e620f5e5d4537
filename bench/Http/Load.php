<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Requests of the clients as a script for wrk. Each client sends its next request after an answer. */
final readonly class Load
{
    /** Mark that {@see WrkRun::awaitMark()} waits for. */
    public const MARK = 'mark';

    /** Makes wrk print what {@see WrkResult} reads. */
    public const DONE = <<<'LUA'
        done = function(summary, latency)
            local errors = summary.errors
            io.write(string.format(
                '{"requests":%d,"bytes":%d,"us":%d,"p50":%d,"p99":%d,'
                    .. '"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}\n',
                summary.requests, summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
                errors.connect, errors.read, errors.write, errors.timeout, errors.status
            ))
        end

        LUA;

    /**
     * @param bool     $isIdentical whether all requests are the same; otherwise each has its own number
     * @param int|null $mark        number of requests after which wrk prints a mark
     */
    public function __construct(
        public Work $work,
        public int $connections,
        private bool $isIdentical = false,
        private ?int $mark = null,
    ) {}

    public function script(string $host): string
    {
        $number = random_int(Work::FIRST_NUMBER, 5 * Work::FIRST_NUMBER);
        $request = '"' . strtr(
            $this->work->request($host),
            ["\r" => '\r', "\n" => '\n', Work::NUMBER => $this->isIdentical ? (string) $number : '" .. n .. "'],
        ) . '"';
        $printMark = $this->mark === null
            ? ''
            : \sprintf('if n %% %d == 0 then io.write("%s\n") io.flush() end ', $this->mark, self::MARK);

        return ($this->isIdentical
            ? "local same = {$request}\nrequest = function() return same end\n"
            : "local n = {$number}\nrequest = function() n = n + 1 {$printMark}return {$request} end\n") . self::DONE;
    }
}
