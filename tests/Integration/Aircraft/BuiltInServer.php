<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Assert;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\WebServer;

final class BuiltInServer extends Assert implements Host
{
    use OwnDirectory;
    use WebServer;

    private readonly string $address;

    public function __construct(string $dsn)
    {
        $index = var_export(\dirname(__DIR__, 3) . '/examples/aircraft/public/index.php', true);
        $settings = 'putenv(' . var_export("DATABASE_URL={$dsn}", true) . ');'
            . " putenv('AIRCRAFT_WAIT=" . self::WAIT . "');";
        $page = $this->file('index.php', "<?php\n{$settings}\nrequire {$index};\n");
        $this->address = str_replace(['http://', '/page'], ['tcp://', ''], $this->startBuiltIn($page));
    }

    public function address(): string
    {
        return $this->address;
    }

    public function stop(): void
    {
        $this->stopServer();
        $this->removeDirectory();
    }
}
