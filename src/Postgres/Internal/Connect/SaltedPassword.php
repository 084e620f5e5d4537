<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * Computes a salted password (PBKDF2 with HMAC-SHA-256) in slices. Other fibers run between two slices. Without
 * slices, a login could block all fibers for seconds, because the server chooses the number of iterations.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8018#section-5.2
 */
final class SaltedPassword
{
    /** Iterations per slice: some milliseconds of work. PostgreSQL's default of 4096 iterations is one slice. */
    private const ITERATIONS_PER_SLICE = 4096;

    private string $last;

    /** XOR of the HMACs of all iterations so far. */
    private string $sum;

    private int $left;

    /** @var \WeakReference<object>|null the login whose calls of compute() do the work; other logins wait */
    private ?\WeakReference $worker = null;

    public function __construct(#[\SensitiveParameter] private readonly string $password, string $salt, int $iterations)
    {
        $this->sum = $this->last = hash_hmac('sha256', "{$salt}\0\0\0\1", $password, true);
        $this->left = $iterations - 1;
    }

    /**
     * @param object $login the caller. Only one login computes. When that login is destroyed, the next caller continues
     *
     * @return string|null the salted password; null if further calls are needed
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
