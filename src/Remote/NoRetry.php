<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** An exception that implements this says that to try the job again does not help: it goes to the dead letters at once. */
interface NoRetry {}
