<?php

declare(strict_types=1);

/*
 * The classes of a worker, loaded before any autoloader exists. As few as possible, so that a worker starts fast.
 */

require_once dirname(__DIR__, 3) . '/SpindleException.php';
require_once dirname(__DIR__, 2) . '/UnserializableException.php';
require_once dirname(__DIR__, 2) . '/Thrown.php';
require_once dirname(__DIR__, 2) . '/TaskContext.php';
require_once dirname(__DIR__) . '/Protocol.php';
require_once dirname(__DIR__) . '/Mark.php';
require_once dirname(__DIR__) . '/Packing.php';
require_once dirname(__DIR__) . '/Portable.php';
require_once dirname(__DIR__) . '/TaskCode.php';
require_once __DIR__ . '/Failure.php';
require_once __DIR__ . '/Wire.php';
require_once __DIR__ . '/ResultBuffer.php';
require_once __DIR__ . '/Life.php';
require_once __DIR__ . '/State.php';
require_once __DIR__ . '/Items.php';
require_once __DIR__ . '/Worker.php';
require_once __DIR__ . '/Boot.php';
