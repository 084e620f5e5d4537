<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Implemented by exceptions after which a retry does not help. A task that throws one is a dead letter at once. */
interface NoRetry {}
