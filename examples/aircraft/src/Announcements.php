<?php

declare(strict_types=1);

namespace Aircraft;

/** Announces changes to all listeners: processes and other applications, through the database. */
interface Announcements
{
    public const CHANNEL = 'aircraft';

    /** Announces a change. Announcements may be lost, so a page that shows aircraft reloads them from time to time. */
    public function announce(Change $change, Number $number): void;
}
