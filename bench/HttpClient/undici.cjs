'use strict';

// Measures undici for bench/http-client.php, and prints the result as JSON.

const [undici, , urls, countText, fibersText] = process.argv.slice(2);
const { Pool } = require(undici);

const [count, fibers] = [Number(countText), Number(fibersText)];
const { origin, pathname } = new URL(urls.split(',')[0]);
const pool = new Pool(origin, { connections: fibers, pipelining: 1 });

async function get(total) {
    let left = total;
    const work = async () => {
        while (left-- > 0) {
            const { body } = await pool.request({ path: pathname, method: 'GET' });
            if ((await body.text()).length !== 1024) {
                throw new Error('the answer is wrong');
            }
        }
    };
    await Promise.all(Array.from({ length: fibers }, work));
}

(async () => {
    await get(2 * fibers);
    const [begin, usage] = [process.hrtime.bigint(), process.cpuUsage()];
    await get(count);
    const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
    const { user, system } = process.cpuUsage(usage);
    console.log(JSON.stringify({
        value: count / seconds,
        cpu: (user + system) / count,
        peak: process.resourceUsage().maxRSS * 1024,
    }));
    await pool.close();
})();
