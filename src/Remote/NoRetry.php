<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Marks exceptions after which a retry is useless. A task that throws such an exception is not retried. */
interface NoRetry {}
