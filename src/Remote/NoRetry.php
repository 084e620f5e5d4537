<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Marks exceptions after which a retry does not help. The job becomes a dead letter at once. */
interface NoRetry {}
