<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * Computes PBKDF2 with HMAC-SHA-256 in slices. The server chooses the iterations, which may need seconds.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8018#section-5.2
 */
final class SaltedPassword
{
    /** Iterations per slice: some milliseconds of work, and the number that PostgreSQL uses by default. */
    private const ITERATIONS_PER_SLICE = 4096;

    private string $last;

    private string $sum;

    private int $left;

    /** @var \WeakReference<object>|null the login that computes for all that wait */
    private ?\WeakReference $worker = null;

    public function __construct(#[\SensitiveParameter] private readonly string $password, string $salt, int $iterations)
    {
        $this->sum = $this->last = hash_hmac('sha256', "{$salt}\0\0\0\1", $password, true);
        $this->left = $iterations - 1;
    }

    /**
     * @param object $login the login that calls; only one of several computes, until it is gone
     *
     * @return string|null null while the computation is not done: call it again
     */
    public function compute(object $login): ?string
    {
        $worker = $this->worker?->get();
        if ($worker === null) {
            $this->worker = \WeakReference::create($login);
        }
        if ($this->left > 0 && ($worker === null || $worker === $login)) {
            $this->slice(min($this->left, self::ITERATIONS_PER_SLICE));
        }

        return $this->left === 0 ? $this->sum : null;
    }

    private function slice(int $iterations): void
    {
        $last = $this->last;
        $sum = $this->sum;
        for ($i = 0; $i < $iterations; ++$i) {
            $last = hash_hmac('sha256', $last, $this->password, true);
            $sum ^= $last;
        }
        $this->last = $last;
        $this->sum = $sum;
        $this->left -= $iterations;
    }
}
