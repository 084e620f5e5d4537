<?php

declare(strict_types=1);

namespace Aircraft;

/** Announces nothing, for an installation without followers. */
final readonly class NoAnnouncements implements Announcements
{
    public function announce(Change $change, Number $number): void {}
}
