<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * PBKDF2 with HMAC-SHA-256, in slices: a server may ask for so many iterations that the loop would stand still for seconds.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8018#section-5.2
 */
final class SaltedPassword
{
    /** Iterations at a time: some milliseconds, and what PostgreSQL asks for unless told otherwise. */
    private const SLICE = 4096;

    private string $last;

    private string $sum;

    private int $left;

    /** @var \WeakReference<object>|null whoever does the work for all that wait for it */
    private ?\WeakReference $worker = null;

    public function __construct(#[\SensitiveParameter] private readonly string $password, string $salt, int $iterations)
    {
        $this->sum = $this->last = hash_hmac('sha256', "{$salt}\0\0\0\1", $password, true);
        $this->left = $iterations - 1;
    }

    /**
     * @param object $login the one that asks; of several only one does a slice, until it is gone
     *
     * @return string|null null while there is more to compute: call it again
     */
    public function compute(object $login): ?string
    {
        $worker = $this->worker?->get();
        if ($worker === null) {
            $this->worker = \WeakReference::create($login);
        }
        if ($this->left > 0 && ($worker === null || $worker === $login)) {
            $this->slice(min($this->left, self::SLICE));
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
